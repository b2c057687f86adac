//! Bounds of the engine, each with its reason; those that an option changes are its default.

use std::time::Duration;

/// Most bytes of one payload unless `payloadByteLimit` says otherwise: far above sensible payloads, and eight of them fit
/// the longest text that JavaScript can hold.
pub const PAYLOAD_BYTES: usize = 64 * 1024 * 1024;

/// Most bytes that `payloadByteLimit` may allow: PostgreSQL holds at most 1 GiB in one value.
pub const MAX_PAYLOAD_BYTES: usize = 1_000_000_000;

/// Items in one commit batch: past this a batch gains little and holds its row locks longer (storage figures level
/// off between 64 and 256).
pub const COMMIT_BATCH_ITEMS: usize = 512;

/// So many items that wait while a batch runs go in one of their own beside it: fewer would cost more than they gain.
pub const COMMIT_CROWD: usize = 48;

/// How often a batch finds out which of its items stand, when leases end between that and the writing: each time fewer stand.
/// Beyond it the committer begins anew.
pub const COMMIT_FINDINGS: usize = 4;

/// Items of one batch of clients: starts and messages are small, and thousands of them in one transaction cost little more
/// than hundreds.
pub const CLIENT_BATCH_ITEMS: usize = 2048;

/// Payload bytes in one commit batch: keeps one flight well below the query time limit on a slow link.
pub const COMMIT_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of the events that lie in one row of history: with its key and its head the row stays below the 2 kB at which PostgreSQL
/// compresses it and moves it aside, which costs more than a second row. A longer event has a row of its own.
pub const HISTORY_ROW_BYTES: usize = 1800;

/// Client starts and messages that wait for the committer: sixteen full batches. The next caller waits for room.
pub const COMMIT_QUEUE_ITEMS: usize = 4096;

/// Runs of a client's item before its error is handed to the caller, who can decide better; engine items are run until
/// the provider closes.
pub const CLIENT_COMMIT_RUNS: u32 = 4;

/// First pause after a failed claim or batch: long enough not to press a database that is in trouble, short enough
/// that one broken session is not noticed. Doubles up to [`RETRY_MAX`].
pub const RETRY_BASE: Duration = Duration::from_millis(20);

/// Longest pause between two tries of a failing claim or batch: what a database that is back waits for at most.
pub const RETRY_MAX: Duration = Duration::from_secs(1);

/// How long a result waits for the turn that uses it, so that one transaction takes both.
pub const RIDE: Duration = Duration::from_millis(10);

/// How often rows are looked at that somebody else has locked and a commit waits for: one small statement.
pub const LOCKED_LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long a client's item waits for such a row before its caller is told.
pub const CLIENT_LOCK_PATIENCE: Duration = Duration::from_secs(8);

/// Messages handed to one turn of one instance; the rest waits for the next turn, so that one flooded instance
/// cannot fill the node's memory.
pub const INBOX_PER_TURN: i64 = 1000;

/// Bytes of messages handed to one turn; the message that goes over is the last. With the longest payload, and the
/// history that an execution may have, an activation stays below the 512 MiB at which JavaScript's strings end.
pub const INBOX_BYTES_PER_TURN: i64 = 32 * 1024 * 1024;

/// Recorded events that are read for the turns of one claim: a few hundred bytes each, so that replays of long histories do not
/// come together in memory. The first history always comes.
pub const REPLAYED_EVENTS_PER_CLAIM: i64 = 100_000;

/// How long an instance is taken to go on in this process after a turn of it was settled here: its end is told without a look
/// at the database. When it went on elsewhere all the same, its waiters hear of the end with the next poll.
pub const UNDER_WAY: Duration = Duration::from_secs(1);

/// Turns claimed by one statement: keeps a claim short and leaves work for other nodes.
pub const CLAIM_BATCH: usize = 128;

/// A turn whose commit is under way for longer holds no slot: it takes nothing of this process, and what a slow way to the
/// database costs is paid once for a claim and a commit. Far above what a commit takes that does not wait.
pub const SLOW_COMMIT: Duration = Duration::from_millis(250);

/// A claim waits for slots that are about to be free, for this part of what claims took lately: it costs as much time for one
/// slot as for all of them.
pub const GATHER_SHARE: u32 = 16;

/// That wait is not worth a timer below this, and no longer than that above.
pub const GATHER: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Activities claimed by one statement: each costs a hundredth of a ms, so that a claim is still short, and its commit is
/// shared by more.
pub const ACTIVITY_CLAIM_BATCH: usize = 512;

/// While claims follow each other without a look, one comes at least this often: it sees what they leave out.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How much longer a claimer sleeps for whom the next heartbeat looks: that is due when the sleep ends. One that is later than
/// this is not waited for.
pub const HEARTBEAT_GRACE: Duration = Duration::from_millis(100);

/// Time limit of one claim, its own and not the query time limit: a slow claim costs nothing but time.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(60);

/// Longest sleep of the claimer while no listener tells it about work of other processes: this is what their work waits
/// for at most, at the price of one claim a second and idle process.
pub const POLL_WITHOUT_LISTENER: Duration = Duration::from_millis(1000);

/// Waiters look at the database at first after this long; ends in this process are told without a look.
pub const WAIT_POLL_BASE: Duration = Duration::from_millis(5);

/// Waiters look at the database at least this often: one look serves all waiters of a process.
pub const WAIT_POLL_MAX: Duration = Duration::from_millis(100);

/// Ids that one look of the waiters asks for: a look stays far below its time limit, whatever else the database does.
pub const WAIT_LOOK_IDS: usize = 1000;

/// Longest id of a node: with the other columns it stays well below the 2704 bytes that an index entry may have.
pub const MAX_NODE_ID_BYTES: usize = 512;

/// Tags that one node names at most: each is one more index look-up of its claims.
pub const MAX_TAGS: usize = 5;

/// Longest tag, as for an activity's own: an index entry holds it.
pub const MAX_TAG_BYTES: usize = 256;

/// Rows that one statement of a list reads: a list with a rare filter is many short statements.
pub const LIST_STRETCH: i64 = 5000;

/// Instances of one page of a list at most.
pub const LIST_PAGE_MAX: i64 = 1000;

/// Closed executions that one statement prunes.
pub const PRUNE_BATCH: i64 = 50;

/// Time limit of deleting one tree, as long as its statements have on the server.
pub const DELETE_LIMIT: Duration = Duration::from_secs(60);

/// Runs of a deletion that met commits or another deletion before its error is handed to the caller.
pub const DELETE_RUNS: u32 = 8;

/// After a failed heartbeat a node leaves leases that ran out to their owners for this long, or for a turn's lease if that
/// is longer: both met the same outage, and the owners renew what they hold as soon as they can.
pub const CAUTION_AFTER_OUTAGE: Duration = Duration::from_secs(5);

/// How long a suspect, an item that may have killed its process, is watched alone before the next one is claimed beside it. It
/// doubles with each delivery past the second, so that what kills later is alone for longer.
pub const SUSPECT_TRIAL: Duration = Duration::from_secs(10);

/// How often a node looks for due work that no live node can run: it changes with deploys.
pub const UNSERVED_EVERY: Duration = Duration::from_secs(30);

/// Findings of an audit: one is too many, a hundred show the pattern.
pub const AUDIT_ROWS: i64 = 100;

/// Timers, activities and children that an explanation lists, of each: more are not for people to read.
pub const EXPLAIN_ROWS: i64 = 100;

/// Longest history that an explanation reads to tell which events are waited for: beyond it that takes seconds.
pub const EXPLAIN_EVENTS: i32 = 100_000;

/// What a queued activity counts in a batch beside its input: a batch has at most 16 384 rows, so that its statement
/// stays well below its time limit.
pub const ENQUEUE_ROW_BYTES: usize = 1024;

/// Standalone activities that one piece of a call queues: large enough that the round trip does not count (a statement
/// gains little past 500 rows), small enough that starts and messages of other callers go between.
pub const ENQUEUE_PIECE: usize = 1000;

/// How long a standalone activity that somebody waits for is kept once it has ended: far longer than the longest poll of
/// a waiter, also of one that lost its database for a while.
pub const AWAITED_RETENTION: Duration = Duration::from_secs(60);

/// How often the runtime that does the chores of all does them while there is something to do.
pub const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The same while there is nothing: what has ended is kept that much longer, and an idle node asks twice a minute.
pub const SWEEP_QUIET_MAX: Duration = Duration::from_secs(30);

/// Longest time between two walks through the turn rows for messages of instances that were never started.
pub const UNKNOWN_WALK_MAX: Duration = Duration::from_secs(300);

/// How often the others ask for them, should that one be gone: fifty idle nodes that ask cost more than the chores.
pub const SWEEP_REFUSED_MAX: Duration = Duration::from_secs(60);

/// Rows that one statement of a sweep deletes.
pub const SWEEP_BATCH: i64 = 1000;

/// How long one sweep deletes trees before it leaves the rest to the next: half of the time that it has for itself.
pub const EXPIRE_FOR: Duration = Duration::from_secs(5);

/// Longest pause after sweeps that failed: waste can wait.
pub const SWEEP_RETRY_MAX: Duration = Duration::from_secs(300);

/// What a committer may wait for the database before the time counts as standing still: a session of the pool and one batch,
/// both at their default limits.
pub const COMMITTER_PATIENCE: Duration = Duration::from_secs(20);

/// Runs of an item that made a committer panic alone before it is refused.
pub const PANIC_RUNS: u32 = 3;

/// Shortest time between two writes of the heartbeats of a runtime: all of them go in one statement, however often bodies
/// call; this is what a crash can cost of the last of them.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);

/// How long keys of clients' messages are remembered: far longer than anybody tries a lost answer again.
pub const MESSAGE_KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Keys forgotten by one statement.
pub const MESSAGE_KEYS_BATCH: i64 = 5_000;

/// Statements of one sweep of keys: with the default interval enough for 28 million messages a day, and seldom long.
pub const MESSAGE_KEY_BATCHES: usize = 20;

/// Sessions of a pool that a runtime uses, unless `maxClients` says otherwise: a busy engine keeps about four at work.
pub const POOL_CLIENTS: usize = 8;

/// Sessions of a pool that no runtime uses: web servers that start and look are many, and each asks for little.
pub const CONTROL_CLIENTS: usize = 2;

/// Hubs of one process: with the pool and the liveness sessions this bounds what a process takes of the server.
pub const HUBS: usize = 4;

/// A hub that nobody leases is closed after this long: a runtime that is stopped and started again finds it.
pub const HUB_IDLE: Duration = Duration::from_secs(30);

/// First delay before a hub connects again; it doubles up to [`HUB_RECONNECT_MAX`].
pub const HUB_RECONNECT_BASE: Duration = Duration::from_millis(250);

/// The same when the database has no session to spare.
pub const HUB_CAPACITY_BASE: Duration = Duration::from_secs(30);

/// Longest delay before a hub connects again: hints are worth little, so a server in trouble is not pressed for them.
pub const HUB_RECONNECT_MAX: Duration = Duration::from_secs(300);

/// How often a hub that lost the election tries again: what a dead leader costs at most, in hints.
pub const HUB_ELECTION_RETRY: Duration = Duration::from_secs(30);

/// What the server may take to answer the last call of a hub that closes.
pub const HUB_GOODBYE: Duration = Duration::from_secs(5);

/// A hub whose goodbye did not come through keeps its place for this long, in which the server notices that it is gone.
pub const HUB_CLOSE_FAILED: Duration = Duration::from_secs(60);

/// Missed hints to ourselves that make a listener deaf.
pub const HUB_PROOFS_MISSED: u32 = 2;

/// Shortest pause between two hints of a channel: what a reader gains from more is below what a claim costs.
pub const HINT_PAUSE: Duration = Duration::from_millis(10);

/// Pause between the groups of listeners that one hint wakes: the first has claimed by then, so that the others, if they come
/// at all, look in vain. As many as there is work come at once, so it delays only what those cannot take.
pub const HINT_SPREAD: Duration = Duration::from_millis(20);

/// How often a process asks how many others listen. Whoever begins to says so; this finds those that have gone.
pub const PRESENCE_EVERY: Duration = Duration::from_secs(30);

/// When it asks, at the latest, once somebody else began to listen: not all of them in the same moment.
pub const PRESENCE_SOON: Duration = Duration::from_secs(1);

/// The second time it asks after a change: two that began together did not see each other the first time.
pub const PRESENCE_AGAIN: Duration = Duration::from_secs(5);

/// Bytes of ids in one hint, well below the 8000 that PostgreSQL allows; above it the hint says "all".
pub const HINT_BYTES: usize = 4000;

/// Waiters look this often while a listener tells them about ends of other processes.
pub const WAIT_POLL_LISTENING: Duration = Duration::from_secs(1);
