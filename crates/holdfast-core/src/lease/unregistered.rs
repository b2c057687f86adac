//! How long an item stays away that this node met and has no handler for.
//!
//! Claims name what a node has, so this is rare: an item that the code handed over has no function for after all. It costs
//! no delivery and poisons nothing; each time one of its name is met the delay doubles. It is told and never sleeps.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::lease::Kind;

/// Names that are counted one by one; those beyond share a count. A runtime rarely lacks more than one.
const NAMES: usize = 1_000;

/// The delays of one runtime.
#[derive(Debug)]
pub struct Unregistered {
    base: Duration,
    max: Duration,
    met: Mutex<BTreeMap<(Kind, String), u32>>,
}

impl Default for Unregistered {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(60))
    }
}

impl Unregistered {
    /// Delays from `base` to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, met: Mutex::default() }
    }

    /// An item of this name was met; how long it is to stay away.
    pub fn met(&self, kind: Kind, name: &str) -> Duration {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if met.len() < NAMES { name } else { "" };
        let times = met.entry((kind, name.to_owned())).or_default();
        let delay = self.base.saturating_mul(2_u32.saturating_pow(*times));
        *times = times.saturating_add(1);
        delay.min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_for_each_name_up_to_its_end() {
        let delays = Unregistered::new(Duration::from_millis(10), Duration::from_millis(35));
        let ms = |name: &str| delays.met(Kind::Activity, name).as_millis();
        assert_eq!([ms("a"), ms("a"), ms("a"), ms("a")], [10, 20, 35, 35]);
        assert_eq!(ms("b"), 10);
        assert_eq!(
            delays.met(Kind::Turn, "a").as_millis(),
            10,
            "an orchestration of that name is another thing"
        );
    }
}
