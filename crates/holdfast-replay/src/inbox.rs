//! Mailboxes: which wait gets which event, and which messages nobody has read.
//!
//! The rule is the one JavaScript follows: a wait takes the oldest unread message of its name at once, else it is
//! open; an arriving message goes to the oldest open wait of its name, else it stays unread. Fed with facts and waits
//! in history order, this gives the same pairs as the running code. Only unread payloads are held.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{Carried, CarriedKind, Payload};

/// One name's messages and waits. At most one of the two queues holds anything.
#[derive(Debug, Default)]
struct Mailbox {
    unread: VecDeque<(u64, Payload)>,
    /// Open waits by command number: the smallest is the oldest.
    waits: BTreeSet<u32>,
}

/// The mailboxes of an execution.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes {
    events: BTreeMap<String, Mailbox>,
    queues: BTreeMap<String, Mailbox>,
    /// What each open wait waits for.
    open: BTreeMap<u32, (CarriedKind, String)>,
    /// Arrivals so far, to keep one order over all names.
    arrivals: u64,
    /// Messages that nobody has read.
    unread: usize,
}

impl Mailboxes {
    /// Mailboxes filled with what the predecessor left.
    pub(crate) fn carried(carried: &[Carried]) -> Self {
        let mut mailboxes = Self::default();
        for message in carried {
            mailboxes.arrive(message.kind, &message.name, &message.data);
        }
        mailboxes
    }

    /// A message arrived; gives the wait that takes it.
    pub(crate) fn arrive(&mut self, kind: CarriedKind, name: &str, data: &Payload) -> Option<u32> {
        self.arrivals += 1;
        let arrival = self.arrivals;
        let mailbox = self.of(kind, name);
        let wait = mailbox.waits.pop_first();
        match wait {
            None => {
                mailbox.unread.push_back((arrival, data.clone()));
                self.unread += 1;
            }
            Some(seq) => {
                self.open.remove(&seq);
                self.forget_empty(kind, name);
            }
        }
        wait
    }

    /// Messages that nobody has read.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Command `seq` waits for a message; true when it takes an unread one at once.
    pub(crate) fn wait(&mut self, kind: CarriedKind, name: &str, seq: u32) -> bool {
        let mailbox = self.of(kind, name);
        let taken = mailbox.unread.pop_front().is_some();
        if taken {
            self.unread -= 1;
            self.forget_empty(kind, name);
        } else {
            mailbox.waits.insert(seq);
            self.open.insert(seq, (kind, name.to_owned()));
        }
        taken
    }

    /// The wait `seq`, open or not, is no longer wanted.
    pub(crate) fn cancel(&mut self, seq: u32) {
        if let Some((kind, name)) = self.open.remove(&seq) {
            self.of(kind, &name).waits.remove(&seq);
            self.forget_empty(kind, &name);
        }
    }

    /// What the open waits wait for, the oldest first.
    pub(crate) fn open_waits(&self) -> Vec<(CarriedKind, String)> {
        self.open.values().cloned().collect()
    }

    /// Nobody waits any more: what arrives from here on stays unread.
    pub(crate) fn close_waits(&mut self) {
        for seq in self.open.keys().copied().collect::<Vec<_>>() {
            self.cancel(seq);
        }
    }

    /// All unread messages, in the order in which they arrived. The mailboxes are empty after it.
    pub(crate) fn take_unread(&mut self) -> Vec<Carried> {
        let mut unread = Vec::new();
        for kind in [CarriedKind::Event, CarriedKind::Queue] {
            for (name, mailbox) in std::mem::take(self.side(kind)) {
                let carried = |(arrival, data)| (arrival, Carried { kind, name: name.clone(), data });
                unread.extend(mailbox.unread.into_iter().map(carried));
            }
        }
        self.unread = 0;
        unread.sort_by_key(|(arrival, _)| *arrival);
        unread.into_iter().map(|(_, carried)| carried).collect()
    }

    fn side(&mut self, kind: CarriedKind) -> &mut BTreeMap<String, Mailbox> {
        match kind {
            CarriedKind::Event => &mut self.events,
            CarriedKind::Queue => &mut self.queues,
        }
    }

    fn of(&mut self, kind: CarriedKind, name: &str) -> &mut Mailbox {
        let side = self.side(kind);
        if !side.contains_key(name) {
            side.insert(name.to_owned(), Mailbox::default());
        }
        side.get_mut(name).expect("inserted above")
    }

    fn forget_empty(&mut self, kind: CarriedKind, name: &str) {
        let side = self.side(kind);
        if side.get(name).is_some_and(|mailbox| mailbox.unread.is_empty() && mailbox.waits.is_empty()) {
            side.remove(name);
        }
    }
}
