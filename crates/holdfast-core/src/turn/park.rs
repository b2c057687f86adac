//! Parking: an instance that cannot go on here is stopped without an end, with its reason.
//!
//! Code that does not fit its history, a history or a message that cannot be read, a wait that the engine does not
//! control, an answer that nobody understands, a commit that the server refuses: each is mended by another deploy, so
//! nothing of the instance is given up for it. Its messages stay, its activities, timers and children go on, its parent is
//! not told. A cancel request ends also what is parked. It never decides when an instance is resumed.

use std::sync::Arc;

use holdfast_replay::{FrameId, Message, MessageBody, Payload, Reply, ReplyOutcome};

use crate::{
    error::{Error, Result},
    lease::Reserved,
    store::{NodeKey, StoreSession, turn::ClaimedTurn},
    telemetry::error_payload,
    turn::{
        Flight, TurnRunner,
        commit::{blind_cancel, park_commit},
    },
};

/// A claimed instance whose history or inbox cannot be read.
pub(super) struct Unreadable {
    pub(super) claimed: ClaimedTurn,
    pub(super) version: String,
    pub(super) error: Error,
    /// Why it is to be cancelled, when somebody asked for that.
    pub(super) cancel: Option<String>,
}

impl TurnRunner {
    /// Stops the instance of a frame with its reason.
    pub(super) fn park(self: &Arc<Self>, frame: FrameId, error: &Payload) {
        let commit = {
            let mut table = self.lock();
            let Some(flight) = table.by_frame(frame) else { return };
            park_commit(flight, error)
        };
        self.submit(commit, None, Reserved::default(), Vec::new());
    }

    /// Stops an instance that cannot be read, or ends it when it is to be cancelled.
    pub(super) async fn set_aside(
        self: &Arc<Self>,
        session: &dyn StoreSession,
        node: &NodeKey,
        unreadable: Unreadable,
    ) -> Result<()> {
        let Unreadable { claimed, version, error, cancel } = unreadable;
        self.tell_corrupt(&claimed, &error);
        let (instance, execution) = (claimed.instance.clone(), claimed.execution);
        let frame = {
            let mut table = self.lock();
            let frame = table.new_frame();
            let flight = Flight::new(claimed, node.clone(), version, frame);
            table.insert(Flight { refused: true, ..flight });
            frame
        };
        let Some(reason) = cancel else {
            self.park(frame, &error_payload("CorruptHistoryError", error.kind().code(), &error.full_text()));
            return Ok(());
        };
        let open = session.open(&instance, execution).await?;
        let commit = {
            let mut table = self.lock();
            let Some(flight) = table.by_frame(frame) else { return Ok(()) };
            blind_cancel(flight, &reason, open)
        };
        self.submit(commit, None, Reserved::default(), Vec::new());
        Ok(())
    }
}

/// The error of code that waits for something that the engine does not control.
pub(super) fn foreign_wait(reply: &Reply) -> Option<Payload> {
    match &reply.outcome {
        ReplyOutcome::Foreign { message } => Some(error_payload("ForeignWaitError", "FOREIGN_WAIT", message)),
        _ => None,
    }
}

/// Why the instance of these messages is to be cancelled.
pub(super) fn cancel_reason(messages: &[Message]) -> Option<String> {
    messages.iter().find_map(|message| match &message.body {
        MessageBody::CancelRequested { reason } => Some(reason.clone()),
        _ => None,
    })
}
