//! Retry policies: delays are capped, grow up to the cap, and never overflow; giving up has its reasons.

use holdfast_replay::{Backoff, Payload, RetryPolicy};

use crate::harness::json;

fn policy(backoff: Backoff) -> RetryPolicy {
    RetryPolicy {
        backoff,
        base_delay_ms: 100,
        max_delay_ms: 1_000,
        jitter_percent: 0,
        ..RetryPolicy::default()
    }
}

fn delays(policy: &RetryPolicy) -> Vec<u64> {
    (1..=6).map(|attempt| policy.delay_ms(attempt, 0.5)).collect()
}

fn error() -> Payload {
    json(r#"{"name":"Error","message":"m"}"#)
}

#[test]
fn delays_follow_their_shape_up_to_the_cap() {
    assert_eq!(delays(&policy(Backoff::Exponential)), [100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(
        delays(&RetryPolicy { max_delay_ms: 450, ..policy(Backoff::Linear) }),
        [100, 200, 300, 400, 450, 450]
    );
    assert_eq!(delays(&policy(Backoff::Fixed)), [100; 6]);
}

#[test]
fn delays_never_overflow_and_never_shrink_before_jitter() {
    for backoff in [Backoff::Exponential, Backoff::Linear, Backoff::Fixed] {
        for (base, cap) in [(1, u64::MAX), (u64::MAX, u64::MAX), (3, 1 << 50), (7, 0), (0, 1_000)] {
            let policy = RetryPolicy { base_delay_ms: base, max_delay_ms: cap, ..policy(backoff) };
            let mut last = 0;
            for attempt in (0..200).chain([10_000, u32::MAX]) {
                let delay = policy.delay_ms(attempt, 0.0);
                assert!(delay >= last && delay <= cap);
                last = delay;
            }
        }
    }
}

#[test]
fn no_delay_is_a_valid_delay() {
    let zero = RetryPolicy { base_delay_ms: 0, jitter_percent: 100, ..policy(Backoff::Exponential) };
    assert_eq!(delays(&zero), [0; 6]);
    assert_eq!(zero.decide(1, &error(), 0, 0.9), Some(0));
}

#[test]
fn jitter_takes_its_share_of_the_delay_and_no_more() {
    let quarter = RetryPolicy { jitter_percent: 25, ..policy(Backoff::Fixed) };
    assert_eq!(quarter.delay_ms(1, 0.0), 75);
    assert_eq!(quarter.delay_ms(1, 0.5), 87);
    assert_eq!(quarter.delay_ms(1, 0.999_999), 99);
    let odd = [f64::NAN, f64::INFINITY, -1.0, 2.0];
    for unit in odd {
        assert!((75..=100).contains(&quarter.delay_ms(1, unit)));
    }
    let all = RetryPolicy { jitter_percent: 255, base_delay_ms: u64::MAX, max_delay_ms: u64::MAX, ..quarter };
    assert_eq!(all.delay_ms(1, 0.0), 0);
    assert_eq!(all.delay_ms(1, 1.0), u64::MAX);
}

#[test]
fn it_gives_up_when_the_tries_are_used_up() {
    let policy = policy(Backoff::Fixed);
    let tries: Vec<bool> =
        (1..=4).map(|attempt| policy.decide(attempt, &error(), 0, 0.0).is_some()).collect();
    assert_eq!(tries, [true, true, false, false]);
    for max_attempts in [0, 1] {
        assert_eq!(RetryPolicy { max_attempts, ..policy.clone() }.decide(1, &error(), 0, 0.0), None);
    }
}

#[test]
fn it_gives_up_when_the_error_says_so() {
    let policy = RetryPolicy { non_retryable: vec!["TypeError".to_owned()], ..policy(Backoff::Fixed) };
    let retried = |text: &str| policy.decide(1, &json(text), 0, 0.0).is_some();
    assert!(!retried(r#"{"name":"TypeError","message":"m"}"#));
    assert!(!retried(r#"{"name":"Type\u0045rror"}"#));
    assert!(!retried(r#"{"name":"Error","retryable":false}"#));
    assert!(!retried(r#"{"name":"\ud800","retryable": false }"#));
    assert!(retried(r#"{"name":"Error","retryable":true}"#));
    assert!(retried(r#"{"name":"Error","data":{"retryable":false}}"#));
    assert!(retried(r#"{"message":"TypeError"}"#));
    let deep = format!(r#"{{"data":{}{},"retryable":false}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert!(!retried(&deep));
    for no_object in ["1", "null", "\"TypeError\"", "[]"] {
        assert!(retried(no_object));
    }
}

#[test]
fn it_gives_up_when_no_time_is_left_for_the_next_try() {
    let policy = RetryPolicy { total_timeout_ms: Some(1_000), ..policy(Backoff::Fixed) };
    assert_eq!(policy.decide(1, &error(), 899, 0.0), Some(100));
    assert_eq!(policy.decide(1, &error(), 900, 0.0), None);
    assert_eq!(policy.decide(1, &error(), u64::MAX, 0.0), None);
}

#[test]
fn a_policy_on_the_wire_may_leave_everything_out() {
    let policy: RetryPolicy = serde_json::from_str("{}").expect("a policy");
    assert_eq!(policy, RetryPolicy::default());
    let policy: RetryPolicy =
        serde_json::from_str(r#"{"maxAttempts":5,"backoff":"linear","nonRetryable":["E"]}"#)
            .expect("a policy");
    assert_eq!((policy.max_attempts, policy.backoff), (5, Backoff::Linear));
}
