//! Reads the files that the rules look at, once, in a stable order.

use std::{fs, io, path::Path};

use super::source::{Source, TextFile};

/// Everything the rules see.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Rust sources.
    pub(crate) rust: Vec<Source>,
    /// Every text file, Rust included.
    pub(crate) texts: Vec<TextFile>,
    /// Known excesses of the length rules: `lines path[::function]` a line.
    pub(crate) ratchet: Vec<(usize, String)>,
}

/// Folders that hold no source of ours.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", ".git", ".holdfast", ".cache"];

/// Endings of the text files we write.
const ENDINGS: &[&str] = &[
    "rs", "ts", "mts", "cts", "js", "mjs", "cjs", "sql", "json", "toml", "lock", "md", "yml", "run",
    "install", "txt",
];

/// Written by the build, never by a person.
const GENERATED: &[&str] = &["binding.cjs", "binding.d.ts"];

/// Where the ratchet's numbers are.
pub(crate) const RATCHET: &str = "crates/xtask/ratchet.txt";

impl Tree {
    /// Reads the tree below `root`.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.folder(root, "")?;
        tree.ratchet =
            tree.texts.iter().filter(|file| file.path == RATCHET).flat_map(parse_ratchet).collect();
        Ok(tree)
    }

    /// Number of files read.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    fn folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.folder(&entry.path(), &path)?;
            } else if kind.is_file() && wanted(&name) {
                self.file(&path, fs::read_to_string(entry.path())?);
            }
        }
        Ok(())
    }

    /// Adds one file.
    pub(crate) fn file(&mut self, path: &str, text: String) {
        if path.ends_with(".rs") {
            self.rust.push(Source::new(path, &text));
        }
        self.texts.push(TextFile { path: path.to_owned(), text });
    }
}

fn wanted(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or(name); // the whole name when it has no dot
    ENDINGS.contains(&ending) && !GENERATED.contains(&name)
}

fn parse_ratchet(file: &TextFile) -> Vec<(usize, String)> {
    let lines = file.text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (lines, place) = line.split_once(' ')?;
            Some((lines.parse().ok()?, place.trim().to_owned()))
        })
        .collect()
}
