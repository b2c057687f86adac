//! The numbers that both stores mint by themselves, paired: fences and message ids. A pair, once seen, holds for the rest of
//! the list; two that meet others than their own are a mismatch.

use std::collections::BTreeMap;

/// Pairs of numbers, one of the model and one of the database.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    to_real: BTreeMap<i64, i64>,
    to_model: BTreeMap<i64, i64>,
}

impl Pairs {
    /// Whether both may be the same; they are from here on.
    pub(super) fn pair(&mut self, model: i64, real: i64) -> bool {
        *self.to_real.entry(model).or_insert(real) == real
            && *self.to_model.entry(real).or_insert(model) == model
    }

    /// The database's number; one that nobody has for a number that was never paired.
    pub(super) fn real(&self, model: i64) -> i64 {
        self.to_real.get(&model).copied().unwrap_or(-1)
    }

    /// The model's number.
    pub(super) fn model(&self, real: i64) -> i64 {
        self.to_model.get(&real).copied().unwrap_or(-1)
    }
}

/// All pairs of a list.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) fences: Pairs,
    pub(super) messages: Pairs,
}

impl Names {
    pub(super) fn new() -> Self {
        let mut names = Self { fences: Pairs::default(), messages: Pairs::default() };
        // Of a row that was never claimed.
        names.fences.pair(0, 0);
        names
    }
}

/// Something that both stores must say alike: a row of a table, or a part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    /// Unique in its table or answer.
    pub(super) key: String,
    pub(super) fences: Vec<i64>,
    pub(super) messages: Vec<i64>,
    /// Equal to the letter.
    pub(super) rest: String,
}

impl Line {
    pub(super) fn new(key: String, rest: String) -> Self {
        Self { key, fences: Vec::new(), messages: Vec::new(), rest }
    }

    #[must_use]
    pub(super) fn with_fences(mut self, fences: &[i64]) -> Self {
        self.fences.extend(fences);
        self
    }

    #[must_use]
    pub(super) fn with_message(mut self, id: i64) -> Self {
        self.messages.push(id);
        self
    }
}

impl Names {
    /// Whether both sides say the same, in any order of keys; else what they say instead.
    pub(super) fn agree(&mut self, mut model: Vec<Line>, mut real: Vec<Line>) -> Result<(), String> {
        model.sort();
        real.sort();
        let mut real = real.into_iter().peekable();
        for line in model {
            let Some(other) = real.next_if(|other| other.key <= line.key) else {
                return Err(format!("the database lacks {}: {}", line.key, line.rest));
            };
            if other.key != line.key {
                return Err(format!("the model lacks {}: {}", other.key, other.rest));
            }
            if line.rest != other.rest {
                return Err(format!(
                    "{}\n    model:    {}\n    database: {}",
                    line.key, line.rest, other.rest
                ));
            }
            let pairs = |pairs: &mut Pairs, model: &[i64], real: &[i64]| {
                model.len() == real.len()
                    && model.iter().zip(real).all(|(model, real)| pairs.pair(*model, *real))
            };
            if !pairs(&mut self.fences, &line.fences, &other.fences)
                || !pairs(&mut self.messages, &line.messages, &other.messages)
            {
                return Err(format!(
                    "{} has other numbers than it had: model {:?} {:?}, database {:?} {:?}",
                    line.key, line.fences, line.messages, other.fences, other.messages
                ));
            }
        }
        match real.next() {
            Some(other) => Err(format!("the model lacks {}: {}", other.key, other.rest)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, fence: i64, rest: &str) -> Line {
        Line::new(key.to_owned(), rest.to_owned()).with_fences(&[fence])
    }

    #[test]
    fn what_differs_is_told_and_numbers_keep_their_partners() {
        let mut names = Names::new();
        assert_eq!(
            names.agree(vec![line("a", 1, "x"), line("b", 2, "")], vec![line("b", 9, ""), line("a", 7, "x")]),
            Ok(())
        );
        assert_eq!((names.fences.real(2), names.fences.model(7), names.fences.real(3)), (9, 1, -1));
        assert!(names.agree(vec![line("a", 1, "x")], vec![line("a", 9, "x")]).is_err(), "another partner");
        assert!(names.agree(vec![line("a", 1, "x")], vec![line("a", 7, "y")]).is_err(), "another text");
        assert!(names.agree(vec![line("a", 1, "x")], vec![]).is_err(), "missing there");
        assert!(names.agree(vec![], vec![line("a", 7, "x")]).is_err(), "missing here");
        assert!(names.agree(vec![line("b", 2, "")], vec![line("a", 7, "x"), line("b", 9, "")]).is_err());
    }
}
