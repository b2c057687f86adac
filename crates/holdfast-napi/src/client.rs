//! The client class.

use std::time::Duration;

use holdfast_core::{
    client::{Client, StandaloneClient, standalone_wire, wire},
    error::Result,
    manage::{self, Manager},
};
use napi_derive::napi;

use crate::{abort::Tickets, failure::JsTextOutcome, provider::JsPostgresProvider};

/// A client.
#[napi]
pub struct JsClient {
    inner: Client,
    manager: Manager,
    standalone: StandaloneClient,
    tickets: Tickets,
}

#[napi]
impl JsClient {
    /// A client of a provider; no I/O.
    #[napi(constructor)]
    pub fn new(provider: &JsPostgresProvider) -> Self {
        Self {
            inner: Client::new(provider.inner.clone()),
            manager: Manager::new(provider.inner.clone()),
            standalone: StandaloneClient::new(provider.inner.clone()),
            tickets: Tickets::default(),
        }
    }

    /// A ticket for one call of this client, which must follow.
    #[napi]
    pub fn take_ticket(&self) -> u32 {
        self.tickets.take()
    }

    /// Gives up the call with this ticket.
    #[napi]
    pub fn give_up(&self, ticket: u32) {
        self.tickets.fire(ticket);
    }

    /// Starts instances; JSON in, JSON out.
    #[napi]
    pub async fn start(&self, items: String, ticket: Option<u32>) -> JsTextOutcome {
        self.tickets.run(ticket, wire::start(&self.inner, &items)).await.into()
    }

    /// Sends one message; JSON in, JSON out.
    #[napi]
    pub async fn send(&self, item: String, ticket: Option<u32>) -> JsTextOutcome {
        self.tickets.run(ticket, wire::send(&self.inner, &item)).await.into()
    }

    /// An instance as JSON, or `null`.
    #[napi]
    pub async fn get(&self, instance: String, ticket: Option<u32>) -> JsTextOutcome {
        self.tickets.run(ticket, wire::get(&self.inner, &instance)).await.into()
    }

    /// The ended instance as JSON, or `null` when the limit runs out first.
    #[napi]
    pub async fn wait(&self, instance: String, limit_ms: f64, ticket: Option<u32>) -> JsTextOutcome {
        let limit = Duration::try_from_secs_f64(limit_ms / 1000.0).unwrap_or(Duration::MAX);
        self.tickets.run(ticket, wire::wait(&self.inner, &instance, limit)).await.into()
    }

    /// History of one execution as JSON.
    #[napi]
    pub async fn history(&self, instance: String, execution: i64) -> JsTextOutcome {
        let history: Result<String> = wire::history(&self.inner, &instance, execution).await;
        history.into()
    }

    /// Queues standalone activities; JSON in, JSON out.
    #[napi]
    pub async fn enqueue(&self, tasks: String) -> JsTextOutcome {
        standalone_wire::enqueue(&self.standalone, &tasks).await.into()
    }

    /// Carries out a request about standalone activities; JSON in, JSON out.
    #[napi]
    pub async fn standalone(&self, request: String, ticket: Option<u32>) -> JsTextOutcome {
        self.tickets.run(ticket, standalone_wire::ask(&self.standalone, &request)).await.into()
    }

    /// Carries out a management request; JSON in, JSON out.
    #[napi]
    pub async fn manage(&self, request: String, ticket: Option<u32>) -> JsTextOutcome {
        self.tickets.run(ticket, manage::wire::manage(&self.manager, &request)).await.into()
    }
}
