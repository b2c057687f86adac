//! What operators ask for: lists, trees, sizes, deleting and pruning.
//!
//! Reads walk an index in bounded stretches and take no locks. Deleting locks turn rows first, as every commit does.
//! It decides nothing: what is not allowed comes back as a word.

mod audit;
mod explain;
mod list;
mod look;
mod remove;
mod resume;
mod retry;

pub(super) use self::look::only;
pub use self::{
    audit::{Finding, audit},
    explain::{Found, FoundActivity, FoundChild, FoundInstance, explain},
    list::{Filter, ListedRow, Position, RootFilter, Stretch, list, pick_roots, roots},
    look::{
        DepthsRow, ExecutionRow, MetricsRow, StatsRow, TreeRow, depths, execution, executions, metrics,
        stats, tree,
    },
    remove::{Deleted, Pruned, delete_tree, prune},
    resume::resume,
    retry::{Poisoned, poisoned, retry},
};
