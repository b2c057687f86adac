//! A migrated schema of its own for one test, and short ways to say what a test does in it.
//! length: one table of what a test can do, in one place.

use std::sync::Arc;

use holdfast_core::{
    pool::{Pool, Row, Session, SessionPurpose, Statement},
    store::{
        ActivityKey, Fence, NodeKey, Statements, TagFilter,
        activity::{self, ClaimedActivity, Lane, Terms},
        commit::{
            self, ActivityCommit, ActivityOutcome, CommitItem, CommitOutcome, NewActivity, Send, Start,
            TurnCommit, TurnEnd, ValueChanges,
        },
        look::{self, Due, LookOrder},
        migrate,
        node::{self, Along, HeartbeatTimes, NodeTimes, Recovery},
        replay_version::ReplayRange,
        turn::{self, ClaimRequest, ClaimedTurn},
    },
};
use holdfast_replay::{EventId, MessageBody, Payload, event::StoredEvent};

use crate::support::TestDatabase;

/// A lease that no test outlives.
pub(crate) const LONG_MS: i64 = 60_000;

/// The only orchestration, version and activity of these tests.
pub(crate) const NAME: &str = "checkout";
pub(crate) const VERSION: &str = "1.0.0";
pub(crate) const ACTIVITY: &str = "charge";

pub(crate) struct Store {
    pub(crate) session: Session,
    pub(crate) statements: Arc<Statements>,
    pub(crate) schema: String,
    pool: Arc<Pool>,
}

impl Store {
    /// A migrated schema.
    pub(crate) async fn new() -> Self {
        let store = Self::unmigrated().await;
        migrate::run(&store.session, &store.statements).await.expect("the schema is made");
        store
    }

    /// A name for a schema and a session.
    pub(crate) async fn unmigrated() -> Self {
        let database = TestDatabase::get();
        let pool = database.pool().await;
        let schema = database.schema();
        let session = pool.open_session(SessionPurpose::Migration).await.expect("a session");
        Self { session, statements: Arc::new(Statements::new(&schema)), schema, pool }
    }

    /// The same schema over another session.
    pub(crate) async fn another(&self) -> Self {
        let session = self.pool.open_session(SessionPurpose::Migration).await.expect("a session");
        Self {
            session,
            statements: Arc::clone(&self.statements),
            schema: self.schema.clone(),
            pool: Arc::clone(&self.pool),
        }
    }

    /// The same schema through another URL.
    pub(crate) async fn through(&self, url: &str) -> Self {
        let pool = Pool::connect(url, TestDatabase::get().pool_config()).await.expect("the database answers");
        let session = pool.open_session(SessionPurpose::Migration).await.expect("a session");
        Self { session, statements: Arc::clone(&self.statements), schema: self.schema.clone(), pool }
    }

    /// Test SQL; `@` stands for the schema and a dot.
    pub(crate) async fn run(&self, sql: &str) {
        let sql = sql.replace('@', &format!("\"{}\".", self.schema));
        self.session.batch(&sql).await.unwrap_or_else(|error| panic!("{sql}: {}", error.full_text()));
    }

    /// Rows of test SQL.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Row> {
        let text = sql.replace('@', &format!("\"{}\".", self.schema));
        let statement = Statement { name: "test/query", text, types: (&[]).into() };
        self.session
            .query(&statement, &[])
            .await
            .unwrap_or_else(|error| panic!("{sql}: {}", error.full_text()))
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.rows(&format!("select ({sql})::bigint")).await[0].get(0)
    }

    pub(crate) async fn holds(&self, condition: &str) -> bool {
        self.rows(&format!("select ({condition})")).await[0].get::<_, Option<bool>>(0).unwrap_or(false)
    }

    pub(crate) async fn node(&self, id: &str) -> NodeKey {
        self.node_with(id, 5_000, 30_000).await
    }

    /// The same, judged by these times in ms.
    pub(crate) async fn node_with(&self, id: &str, interval_ms: i64, stale_after_ms: i64) -> NodeKey {
        let times = NodeTimes { interval_ms, stale_after_ms };
        node::register(&self.session, &self.statements, id, times).await.expect("a node")
    }

    pub(crate) async fn commit(&self, batch: &[CommitItem]) -> Vec<CommitOutcome> {
        self.commit_whole(batch).await.into_iter().map(plain).collect()
    }

    /// The same, with what a turn's next one needs.
    pub(crate) async fn commit_whole(&self, batch: &[CommitItem]) -> Vec<CommitOutcome> {
        commit::commit(&self.session, &self.statements, batch, true)
            .await
            .unwrap_or_else(|error| panic!("commit: {}", error.full_text()))
    }

    /// A first run: in one flight when everything stands.
    pub(crate) async fn commit_first(&self, batch: &[CommitItem]) -> Vec<CommitOutcome> {
        let outcomes = commit::commit(&self.session, &self.statements, batch, false).await;
        outcomes.unwrap_or_else(|error| panic!("commit: {}", error.full_text()))
    }

    pub(crate) async fn commit_one(&self, item: CommitItem) -> CommitOutcome {
        self.commit(&[item]).await.pop().expect("one outcome")
    }

    /// A started instance.
    pub(crate) async fn start(&self, instance: &str) {
        assert_eq!(self.commit_one(start(instance)).await, CommitOutcome::Created);
    }

    pub(crate) async fn send(&self, instance: &str, name: &str) -> CommitOutcome {
        self.commit_one(CommitItem::Send(event(instance, name))).await
    }

    pub(crate) async fn claim(&self, request: &ClaimRequest<'_>) -> Vec<ClaimedTurn> {
        let handlers = [format!("{NAME}@{VERSION}")];
        turn::claim(&self.session, &self.statements, request, &[NAME.to_owned()], &handlers)
            .await
            .unwrap_or_else(|error| panic!("claim: {}", error.full_text()))
    }

    /// The one turn that is due.
    pub(crate) async fn claim_one(&self, node: &NodeKey) -> ClaimedTurn {
        let mut claimed = self.claim(&request(node)).await;
        assert_eq!(claimed.len(), 1, "one turn is due");
        claimed.pop().expect("one")
    }

    pub(crate) async fn claim_activities(&self, request: &ClaimRequest<'_>) -> Vec<ClaimedActivity> {
        self.claim_tagged(request, &TagFilter::default(), Lane::Plain).await
    }

    /// A claim in one lane by a tag filter.
    pub(crate) async fn claim_tagged(
        &self,
        request: &ClaimRequest<'_>,
        tags: &TagFilter,
        lane: Lane,
    ) -> Vec<ClaimedActivity> {
        let takes = Terms { tags, new_sessions: 10, session_timeout_ms: LONG_MS, spares_last: false };
        activity::claim(&self.session, &self.statements, request, &[ACTIVITY.to_owned()], &takes, lane)
            .await
            .unwrap_or_else(|error| panic!("claim: {}", error.full_text()))
    }

    /// A look for everything that these tests claim, without tags.
    pub(crate) async fn look(&self, node: &NodeKey) -> Due {
        self.look_by(node, &TagFilter::default()).await
    }

    /// The same by a tag filter.
    pub(crate) async fn look_by(&self, node: &NodeKey, tags: &TagFilter) -> Due {
        look::look(&self.session, &self.statements, &order(tags).by(node))
            .await
            .unwrap_or_else(|error| panic!("look: {}", error.full_text()))
    }

    /// A heartbeat that takes the same look along: whether the node is alive, and what it found.
    pub(crate) async fn beat_and_look(&self, node: &NodeKey) -> (bool, Option<Due>) {
        let order = order(&TagFilter::default());
        let look = order.by(node);
        let along = Along { look: Some(&look), proof_channel: None };
        let beat = node::heartbeat(&self.session, &self.statements, node, (&[], &[]), times(), along).await;
        let beat = beat.unwrap_or_else(|error| panic!("heartbeat: {}", error.full_text()));
        (beat.alive, beat.due)
    }

    pub(crate) async fn claim_activity(&self, node: &NodeKey) -> ClaimedActivity {
        let mut claimed = self.claim_activities(&request(node)).await;
        assert_eq!(claimed.len(), 1, "one activity is due");
        claimed.pop().expect("one")
    }

    /// The messages that are due for an instance and can be read.
    pub(crate) async fn inbox(&self, instance: &str) -> Vec<(i64, MessageBody)> {
        turn::inbox(&self.session, &self.statements, &[instance.to_owned()], 1_000, i64::MAX)
            .await
            .expect("an inbox")
            .into_iter()
            .filter_map(|(_, message)| message.ok())
            .map(|message| (message.id, message.body))
            .collect()
    }

    /// An instance whose first turn scheduled this many activities.
    pub(crate) async fn with_activities(&self, node: &NodeKey, instance: &str, count: i32) {
        self.start(instance).await;
        let claimed = self.claim_one(node).await;
        let outcome = self.commit_one(scheduling(&claimed, node, count).item()).await;
        assert_eq!(outcome, CommitOutcome::Done { more_work: false });
    }
}

/// A look that found nothing, now or later.
pub(crate) const NOTHING: Due = Due {
    turns: false,
    turn_suspects: false,
    activities: false,
    activity_suspects: false,
    tagged: false,
    in_session: false,
    next: None,
};

/// All that these tests claim.
fn order(tags: &TagFilter) -> LookOrder {
    LookOrder {
        names: vec![NAME.to_owned()],
        handlers: vec![format!("{NAME}@{VERSION}")],
        activities: vec![ACTIVITY.to_owned()],
        tags: tags.clone(),
        new_sessions: true,
        replay: ReplayRange::ALL,
    }
}

/// A claim of up to 100 rows for a long time.
pub(crate) fn request(node: &NodeKey) -> ClaimRequest<'_> {
    ClaimRequest {
        node,
        limit: 100,
        lock_timeout_ms: LONG_MS,
        backoff_base_ms: 1_000,
        backoff_max_ms: 60_000,
        max_attempts: 10,
        isolated: false,
        unowned_only: false,
        replay: ReplayRange::ALL,
    }
}

pub(crate) fn payload(text: &str) -> Payload {
    Payload::from_text(text.to_owned()).expect("JSON")
}

pub(crate) fn start_of(instance: &str) -> Start {
    Start {
        instance: instance.to_owned(),
        name: NAME.to_owned(),
        version: None,
        input: r#"{"n":1.0}"#.to_owned(),
        parent: None,
        ..Start::default()
    }
}

pub(crate) fn start(instance: &str) -> CommitItem {
    CommitItem::Start(start_of(instance))
}

pub(crate) fn event(instance: &str, name: &str) -> Send {
    Send {
        instance: instance.to_owned(),
        dedup_key: None,
        body: MessageBody::EventRaised { name: name.to_owned(), data: payload("1") },
    }
}

/// An outcome without what a turn's next one needs.
pub(crate) fn plain(outcome: CommitOutcome) -> CommitOutcome {
    match outcome {
        CommitOutcome::Settled(settled) => CommitOutcome::Done { more_work: settled.more_work },
        other => other,
    }
}

/// A turn that only settles, with the started event when it is the first of its execution.
pub(crate) fn turn_of(claimed: &ClaimedTurn, node: &NodeKey) -> TurnCommit {
    let mut turn = TurnCommit {
        instance: claimed.instance.clone(),
        fence: claimed.fence,
        node: node.clone(),
        execution: claimed.execution,
        history_len: claimed.history_len,
        version: claimed.version.clone().unwrap_or_else(|| VERSION.to_owned()),
        name: claimed.name.clone(),
        consumed: Vec::new(),
        results: Vec::new(),
        events: Vec::new(),
        activities: Vec::new(),
        keeps: false,
        retake_ms: None,
        belated: Vec::new(),
        timers: Vec::new(),
        cancelled_activities: Vec::new(),
        cancelled_timers: Vec::new(),
        sends: Vec::new(),
        starts: Vec::new(),
        custom_status: None,
        values: ValueChanges::default(),
        reads: Vec::new(),
        end: None,
        park: None,
        unparks: false,
        poisoned: false,
        awaited: false,
    };
    if claimed.history_len == 0 {
        turn.append("OrchestrationStarted", None);
    }
    turn
}

/// A turn that schedules this many activities.
pub(crate) fn scheduling(claimed: &ClaimedTurn, node: &NodeKey, count: i32) -> TurnCommit {
    let mut turn = turn_of(claimed, node);
    for _ in 0..count {
        turn.schedule();
    }
    turn
}

/// What tests add to a turn.
pub(crate) trait TurnWords {
    fn append(&mut self, kind: &str, source: Option<i32>);
    fn schedule(&mut self) -> i32;
    fn completed(self) -> Self;
    fn item(&self) -> CommitItem;
}

impl TurnWords for TurnCommit {
    fn append(&mut self, kind: &str, source: Option<i32>) {
        self.history_len += 1;
        self.events.push(StoredEvent {
            id: event_id(self.history_len),
            kind: kind.to_owned(),
            source: source.map(event_id),
            at_ms: 1,
            data: "{}".to_owned(),
        });
    }

    fn schedule(&mut self) -> i32 {
        self.append("ActivityScheduled", None);
        self.activities.push(NewActivity {
            event: self.history_len,
            name: ACTIVITY.to_owned(),
            input: "1.0".to_owned(),
            retry: None,
            timeout_ms: Some(1_000),
            tag: None,
            session: None,
            lease_ms: None,
        });
        self.history_len
    }

    fn completed(mut self) -> Self {
        self.append("OrchestrationCompleted", None);
        self.end = Some(TurnEnd::Completed { output: "2.0".to_owned() });
        self
    }

    fn item(&self) -> CommitItem {
        CommitItem::Turn(Box::new(self.clone()))
    }
}

pub(crate) fn event_id(number: i32) -> EventId {
    EventId(u32::try_from(number).expect("a positive event id"))
}

/// The result of a claimed activity.
pub(crate) fn result_of(claimed: &ClaimedActivity, node: &NodeKey) -> CommitItem {
    let body = MessageBody::ActivityCompleted {
        execution: claimed.key.execution,
        source: event_id(claimed.key.event),
        result: payload("\"ok\""),
    };
    settling(claimed, node, ActivityOutcome::Ended(body))
}

pub(crate) fn settling(claimed: &ClaimedActivity, node: &NodeKey, outcome: ActivityOutcome) -> CommitItem {
    CommitItem::Activity(ActivityCommit {
        key: ActivityKey { ..claimed.key.clone() },
        fence: claimed.fence,
        node: node.clone(),
        outcome,
        rowless: false,
        rides: false,
        heartbeat: None,
    })
}

/// A heartbeat of a node with a generated id that was heard without a failure for an hour.
pub(crate) fn times() -> HeartbeatTimes {
    HeartbeatTimes {
        explicit: false,
        claim_limit_ms: 60_000,
        recovery: Recovery::Allowed { clean_ms: 3_600_000, fresh: false },
    }
}

pub(crate) fn done(more_work: bool) -> CommitOutcome {
    CommitOutcome::Done { more_work }
}

/// Fences of claimed turns.
pub(crate) fn fences_of(claimed: &[ClaimedTurn]) -> Vec<Fence> {
    claimed.iter().map(|turn| turn.fence).collect()
}
