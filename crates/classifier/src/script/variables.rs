//! Variables that a script sets for itself, the values they may have in a loop, and assignments that mean nothing.

use super::{Judge, Places};
use crate::arg::{Arg, Shape};
use crate::finding::Code;
use alloc::vec::Vec;
use cmdgate_lexer::{Assignment, Command, Part, Span, Word};

/// A segment is judged for at most this many combinations of loop values.
const MOST_COMBINATIONS: usize = 256;

/// A variable that the script itself sets.
#[derive(Debug, Clone)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    /// The value that is being judged now.
    pub(super) current: Arg<'a>,
    /// All values it may have at this place; empty when there is only the current one.
    pub(super) values: Vec<Arg<'a>>,
    /// Whether `current` is the one of `values` that is being judged. Otherwise its value here is not known.
    pub(super) chosen: bool,
}

impl<'a> Judge<'a> {
    /// The variables with several possible values that these words use.
    pub(super) fn loop_variables<'w>(&self, words: impl Iterator<Item = &'w Word<'a>>) -> Vec<usize>
    where
        'a: 'w,
    {
        let mut used = Vec::new();
        if self.variables.is_empty() {
            return used;
        }
        for part in words.flat_map(Word::parts) {
            if let Part::Variable { name, .. } = part
                && let Some(at) = self.variables.iter().rposition(|variable| variable.name == *name)
                && self
                    .variables
                    .get(at)
                    .is_some_and(|variable| variable.values.len() > 1 && !variable.chosen)
                && !used.contains(&at)
            {
                used.push(at);
            }
        }
        used
    }

    /// Runs `judge` for every combination of the values that these variables may have.
    pub(super) fn each_combination(&mut self, looped: &[usize], span: Span, mut run: impl FnMut(&mut Self)) {
        let sizes: Vec<usize> = looped
            .iter()
            .map(|at| self.variables.get(*at).map_or(1, |variable| variable.values.len()))
            .collect();
        let combinations = sizes.iter().fold(1_usize, |product, size| product.saturating_mul(*size));
        if combinations > MOST_COMBINATIONS {
            self.report(Code::TooLarge, span, "has more combinations of loop values than are judged", None);
            return;
        }
        let before = self.places;
        let mut after = Places::NOWHERE;
        let mut room = true;
        for combination in 0..combinations {
            self.places = before;
            let mut rest = combination;
            for (at, size) in looped.iter().zip(&sizes) {
                let choice = rest % size;
                rest /= size;
                if let Some(variable) = self.variables.get_mut(*at)
                    && let Some(value) = variable.values.get(choice)
                {
                    variable.current = value.clone();
                    variable.chosen = true;
                }
            }
            run(self);
            room &= after.add_all(self.places);
        }
        self.places = after;
        if !room {
            self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
        }
        for at in looped {
            if let Some(variable) = self.variables.get_mut(*at) {
                variable.chosen = false;
            }
        }
    }

    pub(super) fn assign(&mut self, assignment: &Assignment<'a>) {
        if !is_harmless_name(assignment.name) {
            let why = "a variable of this name may mean something to the shell or a program";
            self.report(Code::Assignment, assignment.span, why, None);
            return;
        }
        if assignment.append || self.is_tracked(assignment.name) {
            self.report(
                Code::Assignment,
                assignment.span,
                "is set more than once, which is not followed",
                None,
            );
            return;
        }
        let mut args = Vec::with_capacity(1);
        self.unexpanded(&assignment.value, &mut args);
        if let Some(mut value) = args.pop().filter(|_| !self.may_skip) {
            match &mut value.shape {
                // An assignment neither splits nor expands patterns: what looks like one in its text expands at its use. A
                // pattern can only come from a loop's variable (`x="$f"`), where it stands for one name.
                Shape::Exact | Shape::Pipe => {}
                Shape::Pattern { many, .. } => *many = false,
                Shape::Opaque { splits } => *splits = false,
            }
            self.variables.push(Variable {
                name: assignment.name,
                current: value,
                values: Vec::new(),
                chosen: false,
            });
        }
    }
}

/// Whether a variable of this name means nothing to bash or to any program: lower-case names that are not among the
/// few that do, and single capital letters. The executor's environment holds none of them, so an assignment does not
/// change what a program inherits. Zsh, in which an agent may run what was judged here, ties some to `PATH` and its kind.
pub(super) fn is_harmless_name(name: &str) -> bool {
    let lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let single = name.len() == 1 && name.bytes().all(|b| b.is_ascii_uppercase());
    let special = matches!(name, "histchars" | "auto_resume" | "path" | "cdpath" | "fpath" | "module_path");
    (lower || single) && !special && !name.ends_with("_proxy") && !name.starts_with("npm_")
}

/// An assignment before a command that changes only how its output looks.
pub(super) fn is_harmless_assignment(assignment: &Assignment<'_>) -> bool {
    let Some(value) = assignment.value.literal() else {
        return false;
    };
    if assignment.append {
        return false;
    }
    match assignment.name {
        "LC_ALL" | "LANG" | "LC_CTYPE" | "LC_COLLATE" | "LC_MESSAGES" | "LC_NUMERIC" | "LC_TIME" => {
            matches!(value, "C" | "POSIX" | "C.UTF-8" | "C.utf8" | "en_US.UTF-8" | "en_US.utf8")
        }
        "NO_COLOR" | "FORCE_COLOR" | "CLICOLOR" | "CLICOLOR_FORCE" | "CI" => {
            matches!(value, "" | "0" | "1" | "2" | "3" | "true" | "false")
        }
        "TERM" => value == "dumb",
        "COLUMNS" => !value.is_empty() && value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit()),
        "TZ" => is_zone(value),
        "GIT_PAGER" | "PAGER" => value == "cat",
        "GIT_OPTIONAL_LOCKS" | "GIT_TERMINAL_PROMPT" => value == "0",
        _ => false,
    }
}

/// A time zone of the system's own database. With a colon or a slash in front it would be any file.
pub(super) fn is_zone(value: &str) -> bool {
    value.split('/').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
    })
}

/// Whether it only sets variables, and cannot fail.
pub(super) fn is_assignment_item(item: &cmdgate_lexer::ListItem<'_>) -> bool {
    let fixed = |assignment: &Assignment<'_>| {
        assignment.value.parts().iter().all(|part| !matches!(part, Part::Substitution { .. }))
    };
    matches!(item.pipeline.stages.as_slice(),
        [Command::Simple(segment)] if segment.words.is_empty() && segment.redirects.is_empty()
            && !item.pipeline.negated && segment.assignments.iter().all(fixed))
}
