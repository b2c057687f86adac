//! What a committer does with items whose rows somebody else has locked: they wait aside, and hold up no other.

use std::collections::{BTreeSet, HashSet};

use crate::{
    clock,
    commit::{aside::Held, committer::Worker, queue::Pending},
    error::{Error, ErrorKind},
    limits,
    store::StoreSession,
};

impl Worker {
    /// After a commit that lost against somebody else: sets the items aside whose rows are locked, and returns the others
    /// and whether there are some. Without a locked row nothing is set aside.
    pub(super) async fn set_aside(
        &self,
        session: &dyn StoreSession,
        part: Vec<Pending>,
    ) -> (Vec<Pending>, bool) {
        let locked = self.locked(session, instances(&part)).await;
        if locked.is_empty() {
            return (part, false);
        }
        let (held, free): (Vec<_>, Vec<_>) = part.into_iter().partition(|pending| touches(pending, &locked));
        self.counters.commit_retries.add(1);
        let now = clock::now();
        let held = held.into_iter().map(|pending| Held { since: now, pending }).collect();
        self.queue.put_aside(held, now);
        (free, true)
    }

    /// Looks at the rows of what is aside: what is free is run again, a client's item that waited long enough is answered.
    pub(super) async fn look_again(&self, session: &dyn StoreSession) {
        let now = clock::now();
        let aside = self.queue.take_aside(now);
        if aside.is_empty() {
            return;
        }
        let locked = self.locked(session, instances(aside.iter().map(|held| &held.pending))).await;
        let (held, free): (Vec<_>, Vec<_>) =
            aside.into_iter().partition(|held| touches(&held.pending, &locked));
        self.queue.push_front(free.into_iter().map(|held| held.pending).collect());
        let (refused, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| {
            held.pending.place.is_some() && now.duration_since(held.since) >= limits::CLIENT_LOCK_PATIENCE
        });
        self.queue.put_aside(held, now);
        for Held { pending, .. } in refused {
            let text = "commit a client's item: somebody else has locked the instance";
            (pending.settled)(Err(Error::new(ErrorKind::Conflict, text)));
        }
    }

    /// The locked ones among these instances; none when that cannot be told.
    async fn locked(&self, session: &dyn StoreSession, instances: Vec<String>) -> HashSet<String> {
        let instances: Vec<&str> = instances.iter().map(String::as_str).collect();
        session.locked(&instances).await.unwrap_or_default()
    }
}

fn instances<'a>(items: impl IntoIterator<Item = &'a Pending>) -> Vec<String> {
    let all: BTreeSet<&str> = items.into_iter().flat_map(|pending| pending.item.instances()).collect();
    all.into_iter().map(str::to_owned).collect()
}

fn touches(pending: &Pending, locked: &HashSet<String>) -> bool {
    pending.item.instances().iter().any(|instance| locked.contains(*instance))
}
