//! `npm run model`: explores the protocol, and each mutant of it, and says what held.
//!
//! With `--json` the last line is one JSON object. Exit code 0 only when every property holds and every mutant is caught.

use std::process::ExitCode;

use holdfast_model::{
    action::Breach,
    explore::{Report, explore},
    rules::{Mutant, Rules},
};
use serde_json::json;

/// The property that is not one of the breaches.
const SETTLED: &str = "every item can still end, from every reachable state, without another fault";

fn main() -> ExitCode {
    let json = std::env::args().any(|argument| argument == "--json");
    let mut states = 0;
    let mut broken: Vec<&str> = Vec::new();
    for (what, rules) in explorations() {
        let report = explore(&rules);
        states += report.states;
        println!("{what}: {} states, {}", report.states, verdict(&report));
        broken.extend(report.breach.iter().map(|(breach, _)| breach.property()));
        broken.extend(report.stuck.iter().map(|_| SETTLED));
    }
    let mut mutants = Vec::new();
    for mutant in Mutant::ALL {
        let report = explore(&Rules { mutant: Some(mutant), slow_claims: true, ..Rules::one_item() });
        let caught = report.breach.is_some() || report.stuck.is_some();
        println!("without a rule, {}: {}", mutant.name(), verdict(&report));
        mutants.push(json!({ "name": mutant.name(), "caught": caught, "counterexample": way(&report) }));
    }
    let names = Breach::ALL.map(Breach::property).into_iter().chain([SETTLED]);
    let properties: Vec<_> =
        names.map(|name| json!({ "name": name, "holds": !broken.contains(&name) })).collect();
    let good = broken.is_empty() && mutants.iter().all(|mutant| mutant["caught"] == true);
    if json {
        println!("{}", json!({ "states": states, "properties": properties, "mutants": mutants }));
    } else {
        println!("{}", if good { "every property holds and every mutant is caught" } else { "NOT PROVEN" });
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One item with every number of faults, and two items with three faults at most: with more of them there are more
/// states than memory, and what two items share is only the life of their nodes.
fn explorations() -> [(&'static str, Rules); 3] {
    let one = Rules::one_item();
    [
        ("1 item, 3 nodes, any faults", one),
        ("1 item, 3 nodes, any faults, claims slower than leases", Rules { slow_claims: true, ..one }),
        (
            "2 items, 3 nodes, 3 faults",
            Rules { items: 2, max_attempts: 1, commits: 1, faults: Some(3), ..one },
        ),
    ]
}

fn verdict(report: &Report) -> String {
    match (&report.breach, &report.stuck) {
        (Some((breach, way)), _) => {
            format!("broken after {} actions: {}\n  {way:?}", way.len(), breach.property())
        }
        (None, Some(way)) => format!("stuck for ever after {} actions\n  {way:?}", way.len()),
        (None, None) => "nothing broken, nothing stuck".to_owned(),
    }
}

fn way(report: &Report) -> Option<Vec<String>> {
    let way = report.breach.as_ref().map(|(_, way)| way).or(report.stuck.as_ref())?;
    Some(way.iter().map(|action| format!("{action:?}")).collect())
}
