//! From a claimed task to a job, and from a result to what is written: success, another try by the policy, or the end.

use holdfast_replay::{EventId, MessageBody, Payload, RetryPolicy};

use crate::{
    activity::{flight::Flight, runner::ActivityLimits},
    crossing::ActivityJob,
    store::{
        NodeKey,
        activity::ClaimedActivity,
        commit::{ActivityEnd, ActivityOutcome},
    },
    telemetry,
};

/// The job of a task; `None` when its input is not JSON.
pub(super) fn job(claimed: &ClaimedActivity, node: &NodeKey, limits: &ActivityLimits) -> Option<ActivityJob> {
    let policy = policy(claimed);
    let timeout_ms = claimed
        .timeout_ms
        .or_else(|| {
            policy.as_ref().and_then(|policy| policy.timeout_ms).and_then(|ms| i64::try_from(ms).ok())
        })
        .or_else(|| limits.timeout.and_then(|limit| i64::try_from(limit.as_millis()).ok()));
    Some(ActivityJob {
        h: 0,
        name: claimed.name.clone(),
        input: Payload::from_text(claimed.input.clone())?,
        instance: claimed.key.instance.clone(),
        execution: claimed.key.execution,
        event: claimed.key.event,
        orchestration: claimed.orchestration_name.clone(),
        version: claimed.orchestration_version.clone(),
        attempt: claimed.attempt,
        delivery: claimed.deliveries,
        max_attempts: policy.map_or(1, |policy| policy.max_attempts),
        tag: claimed.tag.clone(),
        session: claimed.session.clone(),
        worker_id: node.id.clone(),
        timeout_ms,
        deadline_ms: timeout_ms.map(|ms| claimed.now_ms.saturating_add(ms)),
    })
}

pub(super) fn policy(claimed: &ClaimedActivity) -> Option<RetryPolicy> {
    claimed.retry.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// Another try after an error, or the end with it.
pub(super) fn retry_or_end(flight: &Flight, error: Payload) -> ActivityOutcome {
    let claimed = &flight.claimed;
    let elapsed = claimed.now_ms - claimed.scheduled_at_ms;
    let here = i64::try_from(flight.since.elapsed().as_millis()).unwrap_or(i64::MAX);
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
