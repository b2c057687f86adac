//! Whom a hint wakes: as many claimers as there is work at once, the others one after the other, to look. No I/O.
//!
//! The nodes that listen stand in a row, the same for all. Each hint names where it begins; from there on as many nodes as
//! there is work claim at once. Later groups of as many look after a pause each: had the first been full, dead or without
//! the handlers, they find what is left; otherwise a look is all that it costs.

use std::time::Duration;

use crate::{limits, store::notify::Place};

/// How long a claimer in this place waits before it heeds a hint of so much work that begins at `first`.
pub(super) fn delay(place: Option<Place>, work: u32, first: u64) -> Duration {
    let Some(place) = place.filter(|place| place.before < place.listening) else { return Duration::ZERO };
    let row = place.listening;
    let behind = (place.before + row - first % row) % row;
    let group = behind / u64::from(work.max(1));
    limits::HINT_SPREAD.saturating_mul(u32::try_from(group).unwrap_or(u32::MAX))
}

/// Where the hints of one process begin: at another node each time, and at the process itself last.
#[derive(Debug, Default)]
pub(super) struct Turns(u64);

impl Turns {
    /// Begins anywhere: processes that send little must not all begin at the same node.
    pub(super) fn new(anywhere: u64) -> Self {
        Self(anywhere)
    }

    /// Where a hint of so much work begins, sent by a process in this place.
    pub(super) fn next(&mut self, work: u32, own: Option<Place>) -> u64 {
        let work = u64::from(work.max(1));
        let step = self.0;
        self.0 = self.0.wrapping_add(work) % (1 << 52);
        match own {
            Some(own) => own.before + 1 + step % own.listening.saturating_sub(work).max(1),
            None => step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(listening: u64) -> impl Iterator<Item = Option<Place>> {
        (0..listening).map(move |before| Some(Place { before, listening, others: listening - 1 }))
    }

    fn at_once(listening: u64, work: u32, first: u64) -> usize {
        row(listening).filter(|place| delay(*place, work, first).is_zero()).count()
    }

    #[test]
    fn one_hint_wakes_as_many_as_there_is_work_wherever_it_begins() {
        for first in 0..20 {
            assert_eq!(at_once(8, 1, first), 1);
            assert_eq!(at_once(8, 3, first), 3);
            assert_eq!(at_once(8, 100, first), 8);
        }
    }

    #[test]
    fn the_others_look_one_after_the_other() {
        let mut delays: Vec<u32> = row(8)
            .map(|place| (delay(place, 1, 5).as_millis() / limits::HINT_SPREAD.as_millis()) as u32)
            .collect();
        delays.sort_unstable();
        assert_eq!(delays, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn who_does_not_know_its_place_heeds_every_hint() {
        assert_eq!(delay(None, 1, 3), Duration::ZERO);
        let gone = Place { before: 0, listening: 0, others: 0 };
        assert_eq!(delay(Some(gone), 1, 3), Duration::ZERO);
    }

    #[test]
    fn hints_of_one_process_go_round_and_leave_itself_out() {
        let own = Place { before: 2, listening: 8, others: 7 };
        let mut turns = Turns::new(1 << 51);
        let mut woken = [0; 8];
        for _ in 0..70 {
            let first = turns.next(1, Some(own));
            let place = row(8).position(|place| delay(place, 1, first).is_zero()).expect("somebody");
            woken[place] += 1;
        }
        assert_eq!(woken, [10, 10, 0, 10, 10, 10, 10, 10]);
    }
}
