//! The rules of STYLE.md marked as checked: reads the tree once, runs every rule over it, prints what it found.
//!
//! A rule is a function from sources to findings; it reads no file and prints nothing, so that each is tested with a
//! few lines of text.

mod attributes;
mod finding;
mod heads;
mod layers;
mod length;
mod lock_files;
mod options;
mod scan;
mod source;
mod spawns;
mod sql_files;
mod sql_text;
mod tree;
mod unread;
mod words;

use std::{path::Path, process::ExitCode};

pub(crate) use self::{finding::Finding, tree::Tree};
use crate::codegen;

/// Runs every rule over the repository at `root`.
pub(crate) fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read the tree: {error}");
            return ExitCode::from(2);
        }
    };
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    for option in unread::UNREAD {
        println!("note: nobody reads the option `{option}`");
    }
    println!("tidy: {} files, {} findings", tree.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints which room of the engine imports which, lowest layer first.
pub(crate) fn print_layers(root: &Path) -> ExitCode {
    match Tree::read(root) {
        Ok(tree) => {
            for line in layers::describe(&tree.rust) {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("layers: cannot read the tree: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &tree.rust {
        found.extend(heads::check(source));
        found.extend(layers::check(source));
        found.extend(sql_text::check(source));
        found.extend(length::check_functions(source, &tree.ratchet));
        found.extend(attributes::check(source));
        found.extend(spawns::check(source));
    }
    found.extend(sql_files::check(tree));
    found.extend(options::check(tree));
    found.extend(unread::check(tree));
    found.extend(codegen::check(tree));
    for file in &tree.texts {
        found.extend(length::check_file(file, &tree.ratchet));
        found.extend(words::check(file));
        found.extend(lock_files::check(file));
    }
    found.extend(length::check_ratchet(tree));
    found.sort();
    found
}
