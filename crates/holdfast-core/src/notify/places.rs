//! Which hubs a process has: leased, idle, closing. Told the time, no I/O.
//!
//! Invariant: never more than the limit, a closing one included, because its session may still be there.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Places<K> {
    limit: usize,
    idle_for: Duration,
    places: Vec<Place<K>>,
}

#[derive(Debug)]
struct Place<K> {
    key: K,
    leases: usize,
    /// The last release.
    released: Instant,
    closing: bool,
}

/// What a caller who wants a hub gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer<K> {
    /// The one that is there.
    Share,
    /// A place; the hub is to be opened.
    Open,
    /// None at present; the idle one that was used least recently is to be closed to make room.
    Full {
        /// The one to close.
        close: Option<K>,
    },
}

impl<K: PartialEq + Clone> Places<K> {
    pub(super) fn new(limit: usize, idle_for: Duration) -> Self {
        Self { limit, idle_for, places: Vec::new() }
    }

    /// A caller wants a hub.
    pub(super) fn lease(&mut self, key: &K, now: Instant) -> Answer<K> {
        if let Some(place) = self.places.iter_mut().find(|place| place.key == *key) {
            if place.closing {
                return Answer::Full { close: None };
            }
            place.leases += 1;
            return Answer::Share;
        }
        if self.places.len() < self.limit {
            self.places.push(Place { key: key.clone(), leases: 1, released: now, closing: false });
            return Answer::Open;
        }
        let idle = self.places.iter_mut().filter(|place| place.leases == 0 && !place.closing);
        let close = idle.min_by_key(|place| place.released).map(|place| {
            place.closing = true;
            place.key.clone()
        });
        Answer::Full { close }
    }

    /// A caller gives its lease back; when the hub may be closed if nobody comes.
    pub(super) fn release(&mut self, key: &K, now: Instant) -> Option<Instant> {
        let place = self.places.iter_mut().find(|place| place.key == *key)?;
        place.leases = place.leases.saturating_sub(1);
        place.released = now;
        (place.leases == 0).then(|| now + self.idle_for)
    }

    /// Whether a hub whose idle time is over is to be closed now.
    pub(super) fn retire(&mut self, key: &K, now: Instant) -> bool {
        let idle_for = self.idle_for;
        let Some(place) = self.places.iter_mut().find(|place| place.key == *key) else { return true };
        place.closing |= place.leases == 0 && now.saturating_duration_since(place.released) >= idle_for;
        place.closing
    }

    /// Every hub is to be closed now; those that come are turned away until a place is free again.
    pub(super) fn close_all(&mut self) {
        for place in &mut self.places {
            place.closing = true;
        }
    }

    /// The session of a hub is gone: its place is free.
    pub(super) fn gone(&mut self, key: &K) {
        self.places.retain(|place| place.key != *key);
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(30);

    fn full(now: Instant) -> Places<u32> {
        let mut places = Places::new(4, IDLE);
        for key in 0..4 {
            assert_eq!(places.lease(&key, now), Answer::Open);
        }
        places
    }

    #[test]
    fn a_lease_shares_the_hub_and_the_last_release_starts_its_idle_time() {
        let now = Instant::now();
        let mut places = Places::new(4, IDLE);
        assert_eq!(places.lease(&1, now), Answer::Open);
        assert_eq!(places.lease(&1, now), Answer::Share);
        assert_eq!(places.release(&1, now), None);
        assert_eq!(places.release(&1, now), Some(now + IDLE));
        assert!(!places.retire(&1, now + IDLE / 2));
        assert!(places.retire(&1, now + IDLE));
        places.gone(&1);
        assert_eq!(places.len(), 0);
    }

    #[test]
    fn a_lease_in_the_idle_time_keeps_the_hub() {
        let now = Instant::now();
        let mut places = Places::new(4, IDLE);
        places.lease(&1, now);
        places.release(&1, now);
        assert_eq!(places.lease(&1, now + IDLE / 2), Answer::Share);
        assert!(!places.retire(&1, now + IDLE));
    }

    #[test]
    fn beyond_the_bound_the_caller_gets_none_while_all_are_leased() {
        let now = Instant::now();
        assert_eq!(full(now).lease(&9, now), Answer::Full { close: None });
    }

    #[test]
    fn once_all_are_to_be_closed_nobody_gets_a_share_of_one_that_ends() {
        let now = Instant::now();
        let mut places = full(now);
        places.close_all();
        assert_eq!(places.lease(&2, now), Answer::Full { close: None });
        places.gone(&2);
        assert_eq!(places.lease(&2, now), Answer::Open);
    }

    #[test]
    fn the_least_recently_used_idle_hub_is_closed_and_keeps_its_place_until_it_is_gone() {
        let now = Instant::now();
        let mut places = full(now);
        places.release(&2, now);
        places.release(&3, now + Duration::from_secs(1));
        assert_eq!(places.lease(&9, now), Answer::Full { close: Some(2) });
        assert_eq!(places.lease(&2, now), Answer::Full { close: None }, "a closing hub takes nobody");
        assert_eq!(places.lease(&8, now), Answer::Full { close: Some(3) }, "the next idle one");
        assert_eq!(places.lease(&9, now), Answer::Full { close: None }, "its place is not free yet");
        places.gone(&2);
        assert_eq!(places.lease(&9, now), Answer::Open);
    }
}
