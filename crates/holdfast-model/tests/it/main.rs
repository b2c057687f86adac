//! The protocol holds in small explorations, and the model notices when one of its rules is taken out.

use holdfast_model::{
    action::Breach,
    explore::explore,
    rules::{Mutant, Rules},
};

fn small() -> Rules {
    Rules { max_attempts: 1, ..Rules::one_item() }
}

#[test]
fn the_protocol_breaks_no_rule_and_strands_no_item() {
    for slow_claims in [false, true] {
        let report = explore(&Rules { slow_claims, ..small() });
        assert!(report.states > 10_000, "{} states: the exploration ended early", report.states);
        assert_eq!(report.breach, None);
        assert_eq!(report.stuck, None);
    }
}

#[test]
fn two_items_that_share_their_nodes_break_no_rule() {
    let report = explore(&Rules { items: 2, commits: 1, faults: Some(2), ..small() });
    assert!(report.states > 100_000, "{} states: the exploration ended early", report.states);
    assert_eq!(report.breach, None);
    assert_eq!(report.stuck, None);
}

#[test]
fn without_the_fence_a_late_settle_is_a_second_one() {
    let report = explore(&Rules { mutant: Some(Mutant::NoFence), ..small() });
    let breach = report.breach.map(|(breach, _)| breach);
    assert!(
        matches!(breach, Some(Breach::SecondEnd | Breach::SameLength | Breach::StaleWrite)),
        "a write that the fence would have refused, not {breach:?}"
    );
}

#[test]
fn a_lease_stamped_before_the_wait_is_over_when_it_is_granted() {
    let report = explore(&Rules { mutant: Some(Mutant::EarlyStamp), ..small() });
    assert_eq!(report.breach.map(|(breach, _)| breach), Some(Breach::DeadLease));
}

#[test]
fn poison_that_needs_a_lease_never_ends_when_claims_are_slow() {
    let report = explore(&Rules { mutant: Some(Mutant::PoisonThroughLease), slow_claims: true, ..small() });
    assert_eq!(report.breach, None);
    assert!(report.stuck.is_some(), "an item that nobody can end");
}

#[test]
fn attempts_counted_at_settle_let_a_killer_run_for_ever() {
    let report = explore(&Rules { mutant: Some(Mutant::CountedAtSettle), ..small() });
    assert_eq!(report.breach.map(|(breach, _)| breach), Some(Breach::TooManyBodies));
}
