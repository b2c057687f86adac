//! The random commands for sessions, and those that clients give beside commits: standalone activities cancelled, tried again
//! and forgotten, trees deleted, executions pruned, parked instances resumed. The latter are no part of the port; the model
//! has a method for each.

use super::{
    commands::{Run, Step, both, same},
    sides::ask,
    turns::any_instance,
};
use crate::store::{manage, standalone};

/// How long a cancelled one is kept at least.
const KEEP_MS: i64 = 600;

impl Run<'_> {
    /// Renews or sweeps sessions.
    pub(super) async fn sessions(&mut self) -> Step {
        if self.dice.one_in(3) {
            self.say(|| "sweep sessions".to_owned());
            let Some((fake, real)) = both(ask!(self.sides, |side| side.sweep_sessions()))? else {
                return Ok(());
            };
            return same("swept sessions", &fake, &real);
        }
        let node = self.any_node();
        let mut in_use = Vec::new();
        for session in ["x", "y", "z"] {
            if self.dice.one_in(2) {
                in_use.push(session.to_owned());
            }
        }
        let (timeout_ms, idle_ms) = (self.lease_ms(), self.dice.below(2).cast_signed() * 900);
        self.say(|| format!("renew sessions {node:?} {in_use:?} {timeout_ms} {idle_ms}"));
        let answer = ask!(self.sides, |side| side.renew_sessions(&node, &in_use, timeout_ms, idle_ms));
        let Some((fake, real)) = both(answer)? else { return Ok(()) };
        same("renewed sessions", &fake, &real)
    }

    /// Cancels one, tries one again, forgets one, or all that were kept long enough.
    pub(super) async fn standalone(&mut self) -> Step {
        let id = format!("j{}", self.dice.below(4));
        let what = self.dice.below(4);
        self.say(|| format!("standalone {id}, {what}"));
        let sides = &mut *self.sides;
        let (session, statements, model) = (&sides.session, &sides.statements, &mut sides.model);
        let (fake, real) = match what {
            0 => {
                let error = r#"{"code":"CANCELLED"}"#;
                let real = standalone::cancel(session, statements, &id, error, KEEP_MS).await?;
                (model.cancel_standalone(&id, error, KEEP_MS), real)
            }
            1 => {
                let real = standalone::retry(session, statements, &id).await?;
                (model.retry_standalone(&id), real)
            }
            2 => {
                let real = standalone::delete(session, statements, &id).await?;
                (model.ended.remove(&id).is_some(), real)
            }
            _ => {
                let real = standalone::sweep(session, statements, 1_000).await?;
                let (before, now) = (model.ended.len(), model.now);
                model.ended.retain(|_, row| row.keep_until > now);
                return same("swept", &(before - model.ended.len()), &real);
            }
        };
        same("standalone", &fake, &real)
    }

    /// Deletes a tree, prunes an instance, or resumes one that is parked.
    pub(super) async fn manage(&mut self) -> Step {
        let id = any_instance(&mut self.dice);
        let (what, flag) = (self.dice.below(3), self.dice.one_in(2));
        self.say(|| format!("manage {id}, {what}, {flag}"));
        let sides = &mut *self.sides;
        let (session, statements, model) = (&sides.session, &sides.statements, &mut sides.model);
        match what {
            0 => {
                let tree = manage::tree(session, statements, &id).await?;
                let Some(root) = tree.iter().find(|member| member.instance == id && member.parent.is_none())
                else {
                    return same("a root", &None, &model.delete_tree(&id, flag));
                };
                let real = manage::delete_tree(session, statements, root, &tree, flag).await?;
                same("deleted", &model.delete_tree(&id, flag), &real)
            }
            1 => {
                let keep = if flag { 1 } else { 2 };
                let real = manage::prune(session, statements, &id, keep, None, 1).await?;
                same("pruned", &model.prune(&id, keep, 1), &real)
            }
            _ => {
                let real = manage::resume(session, statements, std::slice::from_ref(&id)).await?;
                same("resumed", &model.resume(&id), &!real.is_empty())
            }
        }
    }
}
