//! The refinement: the same random commands run against the simulation's model and against PostgreSQL, through the same port.
//! Every answer must be the same, and after a list the tables.
//!
//! **A mismatch is a fault of the model or of the SQL.** Whoever changes a statement and reads of one here: the lines printed
//! are the commands of the smallest list that shows it, then what each side said. Change the model in `sim/` with the
//! statement (or `sql/refine/read_contents.sql` with a table), and run the printed command again.
//!
//! The database is a schema of its own whose statements see a clock that the list sets (`sql/refine/clock.sql`), so times are
//! compared to the millisecond. Fences and message ids are paired as they are met. Of rows that are due at the same time
//! a claim may take any; the model is told which ones the database took, and takes them where that is allowed. No command
//! waits for a lock: the sides are asked one after the other.

mod answers;
mod batches;
mod book;
mod commands;
mod contents;
mod leases;
mod names;
mod others;
mod sides;
mod turns;

use std::collections::BTreeSet;

use self::{
    book::Book,
    commands::{Run, Stop},
    names::Names,
    sides::Sides,
};
use super::{model::Mutant, program::Dice};
use crate::{chance, error::Result};

/// Commands of a list.
pub const COMMANDS: usize = 60;

/// A list on which the sides do not agree, made as short as it gets.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// The seed of the list.
    pub seed: u64,
    /// The commands that are needed, by their place in the list.
    pub commands: Vec<usize>,
    /// What they do.
    pub done: Vec<String>,
    /// What the sides say.
    pub text: String,
}

/// What one list came to.
#[derive(Debug, Clone, Default)]
pub struct ListReport {
    /// Commands that ran.
    pub commands: usize,
    /// What was found.
    pub mismatch: Option<Mismatch>,
}

/// Both sides, for one list after the other.
pub struct Refinement {
    sides: Sides,
}

impl Refinement {
    /// Makes its schema on the server of the URL; [`Self::close`] takes it away.
    ///
    /// # Errors
    /// When the server cannot be reached or forbids it.
    pub async fn connect(url: &str) -> Result<Self> {
        Ok(Self { sides: Sides::connect(url).await? })
    }

    /// Runs the list of a seed, or only some of its commands, with a model that is broken on purpose or not. A mismatch is
    /// made small.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn run(&mut self, seed: u64, only: Option<&[usize]>, mutant: Mutant) -> Result<ListReport> {
        let all: Vec<usize> = only.map_or_else(|| (0..COMMANDS).collect(), <[usize]>::to_vec);
        let Some(found) = self.list(seed, &all, mutant, only.is_some()).await? else {
            return Ok(ListReport { commands: all.len(), mismatch: None });
        };
        let mismatch = self.smallest(seed, all.clone(), mutant, found).await?;
        Ok(ListReport { commands: all.len(), mismatch: Some(mismatch) })
    }

    /// Leaves commands out as long as there is a mismatch without them.
    async fn smallest(
        &mut self,
        seed: u64,
        all: Vec<usize>,
        mutant: Mutant,
        found: Found,
    ) -> Result<Mismatch> {
        let (mut commands, mut found) = (all, found);
        // Looked at after every command it shows earlier.
        if let Some(earlier) = self.list(seed, &commands, mutant, true).await? {
            found = earlier;
        }
        commands.truncate(found.at);
        let mut piece = commands.len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            while from < commands.len() {
                let without: Vec<usize> =
                    [&commands[..from], &commands[(from + piece).min(commands.len())..]].concat();
                match self.list(seed, &without, mutant, true).await? {
                    Some(other) => {
                        commands = without;
                        commands.truncate(other.at);
                        found = other;
                    }
                    None => from += piece,
                }
            }
            if piece == 1 {
                break;
            }
            piece = piece.div_ceil(2);
        }
        Ok(Mismatch { seed, commands, done: found.done, text: found.text })
    }

    /// Runs some commands of a list; `watched` compares the tables after each and tells what was done.
    async fn list(
        &mut self,
        seed: u64,
        commands: &[usize],
        mutant: Mutant,
        watched: bool,
    ) -> Result<Option<Found>> {
        self.sides.clear(mutant).await?;
        let mut run = Run {
            sides: &mut self.sides,
            names: Names::new(),
            book: Book::default(),
            dice: dice(seed, 0),
            told: watched.then(Vec::new),
        };
        let mut ran = 0;
        let mut step = run.begin().await;
        for place in commands {
            if step.is_err() {
                break;
            }
            ran += 1;
            step = run.command(dice(seed, 1 + *place as u64)).await;
            if step.is_ok() && (watched || ran == commands.len()) {
                step = run.sides.compare(&mut run.names).await?.map_err(Stop::Mismatch);
            }
        }
        match step {
            Ok(()) => Ok(None),
            Err(Stop::Mismatch(text)) => {
                Ok(Some(Found { at: ran, text, done: run.told.unwrap_or_default() }))
            }
            Err(Stop::Broken(error)) => Err(error),
        }
    }

    /// Takes the schema away.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn close(self) -> Result<()> {
        self.sides.close().await
    }
}

struct Found {
    /// Commands that ran until it showed.
    at: usize,
    text: String,
    done: Vec<String>,
}

/// The dice of one command: others may be left out.
fn dice(seed: u64, place: u64) -> Dice {
    Dice(chance::step(chance::step(seed).1 ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15)).1)
}

impl Mismatch {
    /// The command that shows it again.
    pub fn repeat(&self) -> String {
        let places: BTreeSet<usize> = self.commands.iter().copied().collect();
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        format!("npm run refine -- --seed {} --only {}", self.seed, places.join(","))
    }
}
