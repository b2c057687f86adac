//! Both stores behind the same port: the model, whose calls are carried out at once, and the database, in a schema of its own
//! on one session, whose clock is the model's.

use std::borrow::Cow;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio_postgres::types::Type;

use super::{
    super::{
        model::{Model, Mutant},
        port::{SimStore, Wire},
    },
    contents,
    names::Names,
};
use crate::{
    error::Result,
    pool::{CallerClass, Pool, PoolConfig, Session, SessionPurpose, Statement},
    store::{self, ActivityKey, Answer, Statements, Store, StoreSession, migrate},
};

/// The clock at the begin of every list, ms since 1970.
const BEGIN_MS: i64 = 1_700_000_000_000;

const DROP: &str = include_str!("../../../sql/refine/drop.sql");

/// Both stores.
pub(super) struct Sides {
    pub(super) model: Model,
    pub(super) fake: Box<dyn StoreSession>,
    pub(super) real: Box<dyn StoreSession>,
    pub(super) wire: Arc<Wire>,
    pub(super) session: Arc<Session>,
    pub(super) statements: Arc<Statements>,
    pool: Arc<Pool>,
    schema: String,
    set_clock: Statement,
    read_contents: Statement,
}

fn filled(text: &str, schema: &str) -> String {
    text.replace("/*schema*/clock", &format!("\"{schema}_clock\""))
        .replace("/*schema*/tables", &format!("\"{schema}\""))
        .replace("/*schema*/", &format!("\"{schema}\"."))
}

impl Sides {
    /// Makes the schema on the server of the URL.
    pub(super) async fn connect(url: &str) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("holdfast_refine_{}_{count}", std::process::id());
        let pool =
            Pool::connect(url, PoolConfig { application_name: schema.clone(), ..PoolConfig::default() })
                .await?;
        let session = Arc::new(pool.open_session(SessionPurpose::Migration).await?);
        let statements = Arc::new(Statements::new(&schema));
        session.batch(&filled(DROP, &schema)).await?;
        session.batch(&filled(include_str!("../../../sql/refine/clock.sql"), &schema)).await?;
        let set_clock = Statement {
            name: "refine/set_clock",
            text: include_str!("../../../sql/refine/set_clock.sql").to_owned(),
            types: Cow::Borrowed(&[Type::TEXT, Type::TEXT]),
        };
        let read_contents = Statement {
            name: "refine/read_contents",
            text: filled(include_str!("../../../sql/refine/read_contents.sql"), &schema),
            types: Cow::Borrowed(&[]),
        };
        let wire = Arc::<Wire>::default();
        let fake = SimStore(Arc::clone(&wire)).acquire(CallerClass::Ordinary).await?;
        let real = store::over(&session, &statements);
        let mut sides = Self {
            model: Model::default(),
            fake,
            real,
            wire,
            session,
            statements,
            pool,
            schema,
            set_clock,
            read_contents,
        };
        sides.model.now = BEGIN_MS;
        sides.tell_time().await?;
        migrate::run(&sides.session, &sides.statements).await?;
        Ok(sides)
    }

    /// Empties both.
    pub(super) async fn clear(&mut self, mutant: Mutant) -> Result<()> {
        let epochs = self.model.epochs;
        self.model =
            Model { now: BEGIN_MS, up_since: BEGIN_MS - 3_600_000, epochs, mutant, ..Model::default() };
        self.session.batch(&filled(include_str!("../../../sql/refine/clear.sql"), &self.schema)).await?;
        self.tell_time().await
    }

    /// What the model answers.
    pub(super) async fn ask_model<'a, T>(
        &'a mut self,
        call: impl FnOnce(&'a dyn StoreSession) -> Answer<'a, T>,
    ) -> Result<T> {
        let Self { fake, wire, model, .. } = self;
        carried_out(wire, model, call(&**fake)).await
    }

    /// Of rows with equal due times the model's next claims take these first.
    pub(super) fn prefer(&mut self, keys: impl Iterator<Item = ActivityKey>) {
        self.model.preferred = keys.collect();
    }

    /// The next claims look from the beginning: low-water marks are kept by the machine's clock.
    pub(super) fn forget_marks(&self) {
        self.statements.forget_marks();
    }

    /// Gives the database the model's clock.
    pub(super) async fn tell_time(&self) -> Result<()> {
        let (now, up) = (self.model.now.to_string(), self.model.up_since.to_string());
        self.session.query(&self.set_clock, &[&now, &up]).await.map(drop)
    }

    /// Whether the tables hold the same; else what differs.
    pub(super) async fn compare(&self, names: &mut Names) -> Result<std::result::Result<(), String>> {
        let real = contents::of_database(&self.session, &self.read_contents).await?;
        Ok(names.agree(contents::of_model(&self.model), real))
    }

    /// Takes the schema away.
    pub(super) async fn close(self) -> Result<()> {
        let dropped = self.session.batch(&filled(DROP, &self.schema)).await;
        drop((self.real, self.session));
        self.pool.close().await;
        dropped
    }
}

/// The model's answer to a call that was just made.
pub(super) async fn carried_out<T>(wire: &Wire, model: &mut Model, answer: Answer<'_, T>) -> Result<T> {
    for call in wire.take() {
        let started = model.now;
        (call.work)(model, started)(None);
    }
    answer.await
}

/// Asks both sides, the database first: `(the model's answer, the database's)`. The second form gives each its own words.
macro_rules! ask {
    ($sides:expr, |$session:ident| $call:expr) => {
        ask!($sides, |$session| $call, |$session| $call)
    };
    ($sides:expr, |$fake:ident| $of_fake:expr, |$real:ident| $of_real:expr) => {{
        let sides = &mut *$sides;
        let real = {
            let $real = &*sides.real;
            $of_real.await
        };
        let fake = {
            let $fake = &*sides.fake;
            let answer = $of_fake;
            $crate::sim::refine::sides::carried_out(&sides.wire, &mut sides.model, answer).await
        };
        (fake, real)
    }};
}
pub(super) use ask;
