//! The store on PostgreSQL: sessions of the pool with the statements of one schema. It forwards and decides nothing.

use std::{collections::HashSet, ops::Deref, sync::Arc, time::Duration};

use holdfast_replay::{Message, event::StoredEvent};

use crate::{
    error::Result,
    pool::{CallerClass, Lease, Pool, Session, SessionPurpose},
    store::{
        ActivityKey, Answer, Fence, NodeKey, Statements, Store, StoreSession,
        activity::{self, Beat, ClaimedActivity, Lane, Terms},
        commit::{self, CommitItem, CommitOutcome},
        coverage::{self, Ability},
        look::{self, Due, LookRequest},
        node::{self, Along, Heartbeat, HeartbeatTimes, NodeTimes, Swept},
        notify, session,
        turn::{self, ClaimRequest, ClaimedTurn, Open, RenewRequest},
    },
};

/// A schema of a PostgreSQL.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Arc<Pool>,
    statements: Arc<Statements>,
}

impl PostgresStore {
    /// The schema of these statements, reached by this pool; no I/O.
    pub fn new(pool: &Arc<Pool>, statements: &Arc<Statements>) -> Self {
        Self { pool: Arc::clone(pool), statements: Arc::clone(statements) }
    }
}

/// The port on a session that its caller uses beside it.
#[cfg(any(test, feature = "sim"))]
pub(crate) fn over(session: &Arc<Session>, statements: &Arc<Statements>) -> Box<dyn StoreSession> {
    Box::new(Postgres { session: Held::Shared(Arc::clone(session)), statements: Arc::clone(statements) })
}

impl Store for PostgresStore {
    fn acquire(&self, class: CallerClass) -> Answer<'_, Box<dyn StoreSession>> {
        Box::pin(async move {
            let session = Held::Lent(self.pool.acquire(class).await?);
            let session: Box<dyn StoreSession> =
                Box::new(Postgres { session, statements: Arc::clone(&self.statements) });
            Ok(session)
        })
    }

    fn open_liveness(&self) -> Answer<'_, Box<dyn StoreSession>> {
        Box::pin(async move {
            let session = Held::Own(self.pool.open_session(SessionPurpose::Liveness).await?);
            let session: Box<dyn StoreSession> =
                Box::new(Postgres { session, statements: Arc::clone(&self.statements) });
            Ok(session)
        })
    }

    fn was_troubled(&self) -> bool {
        self.pool.stats().connection_errors > 0
    }
}

struct Postgres {
    session: Held,
    statements: Arc<Statements>,
}

enum Held {
    Lent(Lease),
    Own(Session),
    #[cfg(any(test, feature = "sim"))]
    Shared(Arc<Session>),
}

impl Deref for Held {
    type Target = Session;

    fn deref(&self) -> &Session {
        match self {
            Self::Lent(lease) => lease,
            Self::Own(session) => session,
            #[cfg(any(test, feature = "sim"))]
            Self::Shared(session) => session,
        }
    }
}

impl StoreSession for Postgres {
    fn is_broken(&self) -> bool {
        self.session.is_broken()
    }

    fn look<'a>(&'a self, request: &'a LookRequest<'a>) -> Answer<'a, Due> {
        Box::pin(look::look(&self.session, &self.statements, request))
    }

    fn claim_turns<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        handlers: &'a [String],
    ) -> Answer<'a, Vec<ClaimedTurn>> {
        Box::pin(turn::claim(&self.session, &self.statements, request, names, handlers))
    }

    fn claim_activities<'a>(
        &'a self,
        request: &'a ClaimRequest<'a>,
        names: &'a [String],
        takes: &'a Terms<'a>,
        lane: Lane,
    ) -> Answer<'a, Vec<ClaimedActivity>> {
        Box::pin(activity::claim(&self.session, &self.statements, request, names, takes, lane))
    }

    fn inbox<'a>(
        &'a self,
        instances: &'a [String],
        limit: i64,
        bytes: i64,
    ) -> Answer<'a, Vec<(String, Result<Message>)>> {
        Box::pin(turn::inbox(&self.session, &self.statements, instances, limit, bytes))
    }

    fn history<'a>(&'a self, keys: &'a [(String, i64)]) -> Answer<'a, Vec<(String, Result<StoredEvent>)>> {
        Box::pin(turn::history(&self.session, &self.statements, keys))
    }

    fn cancels<'a>(&'a self, instances: &'a [String]) -> Answer<'a, Vec<(String, Message)>> {
        Box::pin(turn::cancels(&self.session, &self.statements, instances))
    }

    fn open<'a>(&'a self, instance: &'a str, execution: i64) -> Answer<'a, Open> {
        Box::pin(turn::open(&self.session, &self.statements, instance, execution))
    }

    fn commit<'a>(&'a self, items: &'a [CommitItem], again: bool) -> Answer<'a, Vec<CommitOutcome>> {
        Box::pin(commit::commit(&self.session, &self.statements, items, again))
    }

    fn locked<'a>(&'a self, instances: &'a [&'a str]) -> Answer<'a, HashSet<String>> {
        Box::pin(commit::locked(&self.session, &self.statements, instances))
    }

    fn renew_turns<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>> {
        Box::pin(turn::renew(&self.session, &self.statements, node, fences, request))
    }

    fn renew_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        request: &'a RenewRequest,
    ) -> Answer<'a, Vec<Fence>> {
        Box::pin(activity::renew(&self.session, &self.statements, node, fences, request))
    }

    fn release_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], delay_ms: i64) -> Answer<'a, u64> {
        Box::pin(turn::release(&self.session, &self.statements, node, fences, delay_ms))
    }

    fn release_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        delay_ms: i64,
    ) -> Answer<'a, u64> {
        Box::pin(activity::release(&self.session, &self.statements, node, fences, delay_ms))
    }

    fn abandon_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence], at_once: bool) -> Answer<'a, u64> {
        Box::pin(turn::abandon(&self.session, &self.statements, node, fences, at_once))
    }

    fn cut_off_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, u64> {
        Box::pin(turn::cut_off(&self.session, &self.statements, node, fences))
    }

    fn abandon_activities<'a>(
        &'a self,
        node: &'a NodeKey,
        fences: &'a [Fence],
        at_once: bool,
    ) -> Answer<'a, u64> {
        Box::pin(activity::abandon(&self.session, &self.statements, node, fences, at_once))
    }

    fn gone_turns<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>> {
        Box::pin(turn::gone(&self.session, &self.statements, node, fences))
    }

    fn gone_activities<'a>(&'a self, node: &'a NodeKey, fences: &'a [Fence]) -> Answer<'a, Vec<Fence>> {
        Box::pin(activity::gone(&self.session, &self.statements, node, fences))
    }

    fn taken<'a>(&'a self, tasks: &'a [(Fence, ActivityKey)]) -> Answer<'a, Vec<Fence>> {
        Box::pin(activity::taken(&self.session, &self.statements, tasks))
    }

    fn release_unknown<'a>(
        &'a self,
        node: &'a NodeKey,
        held_turns: &'a [Fence],
        held_activities: &'a [Fence],
        older_than: Duration,
    ) -> Answer<'a, u64> {
        let (session, statements) = (&*self.session, &self.statements);
        Box::pin(node::release_unknown(session, statements, node, held_turns, held_activities, older_than))
    }

    fn beat<'a>(&'a self, beats: &'a [Beat]) -> Answer<'a, Vec<Fence>> {
        Box::pin(activity::beat(&self.session, &self.statements, beats))
    }

    fn register<'a>(&'a self, id: &'a str, times: NodeTimes) -> Answer<'a, NodeKey> {
        Box::pin(node::register(&self.session, &self.statements, id, times))
    }

    fn heartbeat<'a>(
        &'a self,
        node: &'a NodeKey,
        held: (&'a [Fence], &'a [Fence]),
        times: HeartbeatTimes,
        along: Along<'a>,
    ) -> Answer<'a, Heartbeat> {
        Box::pin(node::heartbeat(&self.session, &self.statements, node, held, times, along))
    }

    fn sweep(&self) -> Answer<'_, Swept> {
        Box::pin(node::sweep(&self.session, &self.statements))
    }

    fn goodbye<'a>(&'a self, node: &'a NodeKey) -> Answer<'a, ()> {
        Box::pin(node::goodbye(&self.session, &self.statements, node))
    }

    fn renew_sessions<'a>(
        &'a self,
        node: &'a NodeKey,
        in_use: &'a [String],
        timeout_ms: i64,
        idle_ms: i64,
    ) -> Answer<'a, usize> {
        Box::pin(session::renew(&self.session, &self.statements, node, in_use, timeout_ms, idle_ms))
    }

    fn sweep_sessions(&self) -> Answer<'_, usize> {
        Box::pin(session::sweep(&self.session, &self.statements))
    }

    fn forget_message_keys(&self) -> Answer<'_, usize> {
        Box::pin(session::forget_message_keys(&self.session, &self.statements))
    }

    fn publish<'a>(&'a self, node: &'a NodeKey, abilities: &'a [Ability<'a>]) -> Answer<'a, ()> {
        Box::pin(coverage::publish(&self.session, &self.statements, node, abilities))
    }

    fn send_hint<'a>(&'a self, channel: &'a str, payload: &'a str) -> Answer<'a, ()> {
        Box::pin(notify::send(&self.session, &self.statements, channel, payload))
    }
}
