//! The client class.

use std::{sync::Arc, time::Duration};

use holdfast_core::{
    client::{Client, StandaloneClient, standalone_wire, wire},
    error::Result,
    manage::{self, Manager},
};
use napi::{Env, bindgen_prelude::PromiseRaw};
use napi_derive::napi;

use crate::{abort::Tickets, failure::JsTextOutcome, life, provider::JsPostgresProvider};

/// What a client's calls need; they go on without its object.
struct Sides {
    inner: Client,
    manager: Manager,
    standalone: StandaloneClient,
    tickets: Tickets,
}

/// A client.
#[napi]
pub struct JsClient {
    sides: Arc<Sides>,
}

#[napi]
impl JsClient {
    /// A client of a provider; no I/O.
    #[napi(constructor)]
    pub fn new(provider: &JsPostgresProvider) -> Self {
        let sides = Sides {
            inner: Client::new(provider.inner.clone()),
            manager: Manager::new(provider.inner.clone()),
            standalone: StandaloneClient::new(provider.inner.clone()),
            tickets: Tickets::default(),
        };
        Self { sides: Arc::new(sides) }
    }

    /// A ticket for one call of this client, which must follow.
    #[napi]
    pub fn take_ticket(&self) -> u32 {
        self.sides.tickets.take()
    }

    /// Gives up the call with this ticket.
    #[napi]
    pub fn give_up(&self, ticket: u32) {
        self.sides.tickets.fire(ticket);
    }

    /// Starts instances; JSON in, JSON out.
    #[napi]
    pub fn start<'env>(
        &self,
        env: &'env Env,
        items: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            sides.tickets.run(ticket, wire::start(&sides.inner, &items)).await.into()
        })
    }

    /// Sends one message; JSON in, JSON out.
    #[napi]
    pub fn send<'env>(
        &self,
        env: &'env Env,
        item: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(
            env,
            async move { sides.tickets.run(ticket, wire::send(&sides.inner, &item)).await.into() },
        )
    }

    /// An instance as JSON, or `null`.
    #[napi]
    pub fn get<'env>(
        &self,
        env: &'env Env,
        instance: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            sides.tickets.run(ticket, wire::get(&sides.inner, &instance)).await.into()
        })
    }

    /// The ended instance as JSON, or `null` when the limit runs out first.
    #[napi]
    pub fn wait<'env>(
        &self,
        env: &'env Env,
        instance: String,
        limit_ms: f64,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        let limit = Duration::try_from_secs_f64(limit_ms / 1000.0).unwrap_or(Duration::MAX);
        life::promise(env, async move {
            sides.tickets.run(ticket, wire::wait(&sides.inner, &instance, limit)).await.into()
        })
    }

    /// History of one execution as JSON.
    #[napi]
    pub fn history<'env>(
        &self,
        env: &'env Env,
        instance: String,
        execution: i64,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            let history = wire::history(&sides.inner, &instance, execution);
            let told: Result<String> = sides.tickets.run(ticket, history).await;
            told.into()
        })
    }

    /// Queues standalone activities; JSON in, JSON out.
    #[napi]
    pub fn enqueue<'env>(
        &self,
        env: &'env Env,
        tasks: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            sides.tickets.run(ticket, standalone_wire::enqueue(&sides.standalone, &tasks)).await.into()
        })
    }

    /// Carries out a request about standalone activities; JSON in, JSON out.
    #[napi]
    pub fn standalone<'env>(
        &self,
        env: &'env Env,
        request: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            sides.tickets.run(ticket, standalone_wire::ask(&sides.standalone, &request)).await.into()
        })
    }

    /// Carries out a management request; JSON in, JSON out.
    #[napi]
    pub fn manage<'env>(
        &self,
        env: &'env Env,
        request: String,
        ticket: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, JsTextOutcome>> {
        let sides = Arc::clone(&self.sides);
        life::promise(env, async move {
            sides.tickets.run(ticket, manage::wire::manage(&sides.manager, &request)).await.into()
        })
    }
}
