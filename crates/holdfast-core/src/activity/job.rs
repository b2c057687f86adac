//! From a claimed task to a job, and from a result to what is written: success, another try by the policy, or the end.

use std::time::Duration;

use holdfast_replay::{EventId, MessageBody, Payload, RetryPolicy};

use crate::{
    activity::{flight::Flight, runner::ActivityLimits},
    clock,
    crossing::{ActivityJob, Job},
    store::{
        activity::ClaimedActivity,
        commit::{ActivityEnd, ActivityOutcome},
    },
    telemetry,
};

/// When a try is given up, counted from the start of its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct TryLimits {
    /// Its time limit, or what is left of the limit over all tries if that is less.
    pub(crate) whole: Option<Duration>,
    /// Whether `whole` is the rest of the limit over all tries.
    pub(crate) is_rest: bool,
    /// Longest time between two heartbeats.
    pub(crate) silence: Option<Duration>,
    /// A try that runs out of time ends the activity without a grace period.
    pub(crate) at_once: bool,
}

/// The limits of this try.
pub(super) fn limits(claimed: &ClaimedActivity, limits: &ActivityLimits) -> TryLimits {
    let policy = policy(claimed);
    let of_policy = |limit: fn(&RetryPolicy) -> Option<u64>| policy.as_ref().and_then(limit);
    let single = claimed.timeout_ms.map(i64::unsigned_abs).or_else(|| of_policy(|policy| policy.timeout_ms));
    let single = single.map(Duration::from_millis).or(limits.timeout);
    let elapsed = u64::try_from(claimed.now_ms - claimed.scheduled_at_ms).unwrap_or(0);
    let rest = of_policy(|policy| policy.total_timeout_ms)
        .map(|total| Duration::from_millis(total.saturating_sub(elapsed)));
    let is_rest = rest.is_some_and(|rest| single.is_none_or(|single| rest <= single));
    TryLimits {
        whole: if is_rest { rest } else { single },
        is_rest,
        silence: of_policy(|policy| policy.heartbeat_timeout_ms).map(Duration::from_millis),
        at_once: policy.as_ref().is_some_and(|policy| policy.final_timeout),
    }
}

/// The job of a task in progress; `None` when its input is not JSON.
pub(super) fn job(h: u32, flight: &Flight) -> Option<Job> {
    let Flight { claimed, node, limits, .. } = flight;
    let in_ms =
        |limit: Option<Duration>| limit.map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
    let job = ActivityJob {
        h,
        name: &claimed.name,
        input: serde_json::from_str(&claimed.input).ok()?,
        instance: &claimed.key.instance,
        execution: claimed.key.execution,
        event: claimed.key.event,
        orchestration: claimed.orchestration_name.as_deref(),
        version: claimed.orchestration_version.as_deref(),
        attempt: claimed.attempt,
        delivery: claimed.deliveries,
        max_attempts: policy(claimed).map_or(1, |policy| policy.max_attempts),
        tag: claimed.tag.as_deref(),
        session: claimed.session.as_deref(),
        worker_id: &node.id,
        timeout_ms: in_ms(limits.whole),
        heartbeat_timeout_ms: in_ms(limits.silence),
        heartbeat: claimed.heartbeat.as_deref().and_then(|text| serde_json::from_str(text).ok()),
    };
    Some(job.written())
}

fn policy(claimed: &ClaimedActivity) -> Option<RetryPolicy> {
    claimed.retry.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// Another try after an error, or the end with it.
pub(super) fn retry_or_end(flight: &Flight, error: Payload) -> ActivityOutcome {
    let claimed = &flight.claimed;
    let elapsed = claimed.now_ms - claimed.scheduled_at_ms;
    let here = i64::try_from(clock::since(flight.since).as_millis()).unwrap_or(i64::MAX);
    let elapsed = u64::try_from(elapsed.saturating_add(here)).unwrap_or(0);
    let attempt = claimed.attempt.unsigned_abs();
    let delay = policy(claimed).and_then(|policy| policy.decide(attempt, &error, elapsed, telemetry::unit()));
    match delay {
        Some(delay) => ActivityOutcome::Retry {
            delay_ms: i64::try_from(delay).unwrap_or(i64::MAX),
            attempt: claimed.attempt.saturating_add(1),
        },
        None => ended(flight, ActivityEnd::Failed(error)),
    }
}

/// The end of a task, as its instance is told, if it has one.
pub(super) fn ended(flight: &Flight, end: ActivityEnd) -> ActivityOutcome {
    let key = &flight.claimed.key;
    if key.execution == 0 {
        return ActivityOutcome::StandaloneEnded(end);
    }
    let (execution, source) = (key.execution, EventId(key.event.unsigned_abs()));
    ActivityOutcome::Ended(match end {
        ActivityEnd::Completed(result) => MessageBody::ActivityCompleted { execution, source, result },
        ActivityEnd::Failed(error) | ActivityEnd::Poisoned(error) => {
            MessageBody::ActivityFailed { execution, source, error }
        }
    })
}
