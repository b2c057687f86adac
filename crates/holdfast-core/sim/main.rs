//! `npm run sim`: runs seeds of the simulation, each in one thread, on as many threads as the machine has cores.
//!
//! ```text
//! holdfast-sim [--seeds N] [--seed S] [--json] [--trace]
//! ```
//! Seeds S to S+N−1 and those that failed in the past; with `--seed` alone that one. The exit code is 0 when all hold.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use holdfast_core::sim::{CORPUS, Mutant, Options, Report, run};
use serde_json::json;

struct Wanted {
    first: u64,
    seeds: u64,
    corpus: bool,
    json: bool,
    trace: bool,
}

fn wanted() -> Option<Wanted> {
    let mut args = std::env::args().skip(1);
    let (mut first, mut seeds, mut as_json, mut trace) = (None, None, false, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => first = Some(args.next()?.parse().ok()?),
            "--seeds" => seeds = Some(args.next()?.parse().ok()?),
            "--json" => as_json = true,
            "--trace" => trace = true,
            _ => return None,
        }
    }
    let corpus = first.is_none();
    let one = if corpus { 2_000 } else { 1 };
    Some(Wanted { first: first.unwrap_or(1), seeds: seeds.unwrap_or(one), corpus, json: as_json, trace })
}

/// Runs all seeds; reports by seed.
fn run_all(seeds: &[u64], options: Options) -> BTreeMap<u64, Report> {
    let (next, reports) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    let Some(seed) = seeds.get(index) else { return };
                    let report = run(*seed, options);
                    reports.lock().unwrap_or_else(PoisonError::into_inner).insert(*seed, report);
                }
            });
        }
    });
    reports.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and scripts")]
fn main() -> ExitCode {
    let Some(wanted) = wanted() else {
        eprintln!("usage: npm run sim -- [--seeds N] [--seed S] [--json] [--trace]");
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    let mut seeds: Vec<u64> = (wanted.first..wanted.first + wanted.seeds).collect();
    if wanted.corpus {
        seeds
            .extend(CORPUS.iter().filter(|seed| !(wanted.first..wanted.first + wanted.seeds).contains(seed)));
    }
    let reports = run_all(&seeds, Options { mutant: Mutant::None, trace: wanted.trace });
    let steps: u64 = reports.values().map(|report| report.steps).sum();
    let simulated: u64 = reports.values().map(|report| report.simulated_ms).sum::<u64>() / 1_000;
    let mut violations = Vec::new();
    for (seed, report) in &reports {
        for found in &report.violations {
            eprintln!(
                "{} is broken: {}; repeat with: npm run sim -- --seed {seed}",
                found.invariant, found.text
            );
            violations.push(json!({ "seed": seed, "invariant": found.invariant, "text": found.text }));
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (count, broken) = (reports.len(), violations.len());
    println!(
        "{count} seeds, {steps} steps, {simulated} simulated seconds, {broken} violations, {seconds:.1} s"
    );
    if wanted.json {
        let all = json!({ "seeds": count, "steps": steps, "simulatedSeconds": simulated, "violations": violations, "seconds": seconds });
        println!("{all}");
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
