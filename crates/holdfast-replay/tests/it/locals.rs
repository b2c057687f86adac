//! Local steps: recorded with their result in one turn, checked against what the reply itself asked for.

use crate::harness::*;

/// A whole turn whose reply has results of local steps; all facts are applied.
fn turn(
    live: &mut Live,
    applied: u32,
    commands: &[String],
    results: &str,
    outcome: &str,
) -> Result<Vec<String>, holdfast_replay::Mismatch> {
    let text =
        format!(r#"{{"h":7,"n":{applied},"c":[{}],"l":[{results}],"o":{outcome}}}"#, commands.join(","));
    let reply = serde_json::from_str(&text).expect("a reply");
    let result = live.execution.complete(reply)?;
    live.commit(&result);
    Ok(lines(&result))
}

#[test]
fn command_and_result_are_recorded_in_one_turn_and_nothing_is_queued() {
    let mut live = Live::begin();
    live.accept(vec![raised("e", "1")]);
    live.activate();
    let commands = [local(1, "a"), local(1, "b"), local(2, "c"), timer(4, 5)];
    let results = r#"{"seq":1,"at":1000000,"ok":2},{"seq":0,"at":1000000,"err":{"message":"m"}},{"seq":2,"at":1000000,"ok":null}"#;
    check(
        &turn(&mut live, 4, &commands, results, WAITING).expect("it fits"),
        r#"1 OrchestrationStarted
           2 ExternalEvent {"name":"e","data":1}
           3 ActivityScheduled {"name":"a","input":null,"local":true}
           4 ActivityScheduled {"name":"b","input":null,"local":true}
           5 ActivityCompleted <4 {"result":2}
           6 ActivityScheduled {"name":"c","input":null,"local":true}
           7 ActivityFailed <3 {"error":{"message":"m"}}
           8 ActivityCompleted <6 {"result":null}
           9 TimerCreated {"fire_at_ms":1000005}
           + timer 9 at 1000005"#,
    );
    let mut cold = live.cold();
    let facts = serde_json::to_string(&cold.activate().facts).unwrap();
    assert!(
        facts.contains(r#"{"t":"done","at":1000000,"seq":1,"value":2},{"t":"fail","at":1000000,"seq":0"#),
        "{facts}"
    );
    turn(&mut cold, 4, &commands, "", WAITING).expect("the same code fits");
    let accepted = live.accept(vec![done(3, "1")]);
    assert_eq!(accepted.dropped[0].1, "answers what has been answered already");
}

#[test]
fn a_step_that_code_left_behind_is_closed_without_an_effect() {
    let mut live = Live::begin();
    live.accept(vec![]);
    live.activate();
    let written = turn(&mut live, 0, &[local(0, "a")], "", &completed("1")).expect("it fits");
    check(
        &written[1..],
        r#"2 ActivityScheduled {"name":"a","input":null,"local":true}
           3 ActivityCancelRequested <2 {"reason":"orchestration_terminal_completed"}
           4 OrchestrationCompleted {"output":1}
           = completed 1"#,
    );
}

#[test]
fn results_of_anything_but_new_local_steps_do_not_fit() {
    let ok = |seq: u32| format!(r#"{{"seq":{seq},"at":1,"ok":1}}"#);
    let cases = [
        (1, vec![activity(0, "a", "1")], ok(0)),
        (1, vec![], ok(0)),
        (2, vec![local(0, "a")], format!("{},{}", ok(0), ok(0))),
        (1, vec![local(1, "a")], ok(0)),
        (0, vec![local(0, "a")], ok(0)),
    ];
    for (applied, commands, results) in cases {
        let mut live = Live::begin();
        live.accept(vec![]);
        live.activate();
        turn(&mut live, applied, &commands, &results, WAITING).expect_err("malformed");
        assert_eq!(live.execution.history_len(), 0);
    }
}

#[test]
fn another_name_and_an_activity_in_its_place_are_found() {
    let mut live = Live::begin();
    live.accept(vec![]);
    live.activate();
    turn(&mut live, 1, &[local(0, "a"), timer(1, 5)], r#"{"seq":0,"at":1,"ok":1}"#, WAITING)
        .expect("it fits");
    for (other, found) in [
        (local(0, "b"), r#"local step "b" at step 0"#),
        (activity(0, "a", "null"), r#"activity "a" with input null at step 0"#),
    ] {
        let mut cold = live.cold();
        cold.accept(vec![]);
        cold.activate();
        let mismatch = turn(&mut cold, 1, &[other, timer(1, 5)], "", WAITING).expect_err("changed");
        assert_eq!(
            (mismatch.position, mismatch.expected.as_str(), mismatch.found.as_str()),
            (2, r#"local step "a" at step 0"#, found)
        );
    }
}
