//! Pages written from the sources: `cargo xtask codegen` writes them, `cargo xtask tidy` says which are not what the
//! sources give.

mod options;

use std::{fs, path::Path, process::ExitCode};

use crate::tidy::{Finding, Tree};

/// A page: its path and what writes it from the tree.
type Page = (&'static str, fn(&Tree) -> Option<String>);

const PAGES: &[Page] = &[("docs/options.md", options::render)];

/// Writes every page of the repository at `root`.
pub(crate) fn run(root: &Path) -> ExitCode {
    let written = Tree::read(root).and_then(|tree| {
        for (path, render) in PAGES {
            let Some(text) = render(&tree) else { continue };
            fs::write(root.join(path), text)?;
            println!("codegen: {path}");
        }
        Ok(())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("codegen: {error}");
            ExitCode::from(2)
        }
    }
}

/// The pages that are not what the sources give.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let stale = |(path, render): &Page| {
        let wanted = render(tree)?;
        let found = tree.texts.iter().find(|file| file.path == *path);
        let is_same = found.is_some_and(|file| file.text == wanted);
        (!is_same)
            .then(|| Finding::new(path, 1, "generated", "not what the sources give: run cargo xtask codegen"))
    };
    PAGES.iter().filter_map(stale).collect()
}
