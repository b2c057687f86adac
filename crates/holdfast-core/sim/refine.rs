//! `npm run refine`: runs lists of random commands against the model and against PostgreSQL, on a few sessions at a time.
//!
//! ```text
//! holdfast-refine [--lists N] [--seed S] [--only 1,4,9] [--mutants] [--json]
//! ```
//! The lists of seeds S (default 1) to S+N−1. The server is the one of `HOLDFAST_TEST_DATABASE_URL`. The exit code is 0 when
//! every list agrees and, with `--mutants`, when for every broken model some list does not.

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use holdfast_core::{
    error::Error,
    sim::{
        Mutant,
        refine::{Mismatch, Refinement},
    },
};
use serde_json::json;

struct Wanted {
    first: u64,
    lists: u64,
    only: Option<Vec<usize>>,
    mutants: bool,
    json: bool,
}

fn wanted() -> Option<Wanted> {
    let mut args = std::env::args().skip(1);
    let (mut first, mut lists, mut only, mut mutants, mut as_json) = (None, None, None, false, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => first = Some(args.next()?.parse().ok()?),
            "--lists" => lists = Some(args.next()?.parse().ok()?),
            "--only" => {
                let places: Result<Vec<usize>, _> = args.next()?.split(',').map(str::parse).collect();
                only = Some(places.ok()?);
            }
            "--mutants" => mutants = true,
            "--json" => as_json = true,
            _ => return None,
        }
    }
    let lists = lists.unwrap_or(if first.is_some() { 1 } else { 200 });
    Some(Wanted { first: first.unwrap_or(1), lists, only, mutants, json: as_json })
}

/// Sessions that run lists side by side.
const WORKERS: usize = 2;

/// Mismatches after which no more lists are begun.
const ENOUGH: usize = 3;

#[derive(Default)]
struct Sum {
    lists: u64,
    commands: u64,
    mismatches: Vec<Mismatch>,
}

/// Runs the lists of one model; stops after a few mismatches.
fn run_lists(url: &str, wanted: &Wanted, mutant: Mutant, enough: usize) -> Result<Sum, Error> {
    let (next, sum) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        runtime.block_on(async {
            let mut refinement = Refinement::connect(url).await?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= wanted.lists || lock().mismatches.len() >= enough {
                    return refinement.close().await;
                }
                let report = refinement.run(wanted.first + number, wanted.only.as_deref(), mutant).await?;
                let mut sum = lock();
                sum.lists += 1;
                sum.commands += report.commands as u64;
                sum.mismatches.extend(report.mismatch);
            }
        })
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[expect(clippy::print_stderr, reason = "a program for people and scripts")]
fn show(mismatch: &Mismatch) {
    for line in &mismatch.done {
        eprintln!("  {line}");
    }
    eprintln!("{}\nrepeat with: {}\n", mismatch.text, mismatch.repeat());
}

/// Whether every broken model is found out.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and scripts")]
fn run_mutants(url: &str, wanted: &Wanted) -> Result<Vec<(String, bool)>, Error> {
    let mut all = Vec::new();
    let mutants = [Mutant::NoFence, Mutant::Uncounted, Mutant::NoWake, Mutant::Forgetful, Mutant::Unmarked];
    for mutant in mutants {
        let found = run_lists(url, wanted, mutant, 1)?.mismatches;
        match found.first() {
            Some(mismatch) => println!("a model with {mutant:?} is found out by list {}", mismatch.seed),
            None => eprintln!("a model with {mutant:?} is not found out"),
        }
        all.push((format!("{mutant:?}"), !found.is_empty()));
    }
    Ok(all)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and scripts")]
fn main() -> ExitCode {
    let url = std::env::var("HOLDFAST_TEST_DATABASE_URL").unwrap_or_default();
    let Some(wanted) = wanted().filter(|_| !url.is_empty()) else {
        eprintln!("usage: npm run refine -- [--lists N] [--seed S] [--only 1,4,9] [--mutants] [--json]");
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    let outcome = run_lists(&url, &wanted, Mutant::None, ENOUGH).and_then(|sum| {
        let mutants = if wanted.mutants { run_mutants(&url, &wanted)? } else { Vec::new() };
        Ok((sum, mutants))
    });
    let (Sum { lists, commands, mismatches }, mutants) = match outcome {
        Ok(all) => all,
        Err(error) => {
            eprintln!("the lists cannot be run: {}", error.full_text());
            return ExitCode::FAILURE;
        }
    };
    mismatches.iter().for_each(show);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{lists} lists, {commands} commands, {} mismatches, {seconds:.1} s", mismatches.len());
    if wanted.json {
        let caught: Vec<_> =
            mutants.iter().map(|(name, caught)| json!({ "name": name, "caught": caught })).collect();
        let all = json!({
            "lists": lists, "commands": commands, "mismatches": mismatches.len(), "mutants": caught, "seconds": seconds,
        });
        println!("{all}");
    }
    let holds = mismatches.is_empty() && mutants.iter().all(|(_, caught)| *caught);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
