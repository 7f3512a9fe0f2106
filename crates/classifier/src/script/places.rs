//! The directories in which a command may run: `cd` followed by text, through subshells and what may not run.

use super::Judge;
use crate::arg::Arg;
use crate::condition::Condition;
use crate::finding::Code;
use crate::paths::join;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cmdgate_lexer::Span;

/// The directories in which the next command may run: indices into [`crate::Effects::directories`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    ids: [u16; 4],
    len: u8,
}

impl Places {
    pub(super) const START: Self = Self { ids: [0; 4], len: 1 };
    pub(super) const NOWHERE: Self = Self { ids: [0; 4], len: 0 };

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let places = *self;
        places.ids.into_iter().take(usize::from(places.len))
    }

    /// Adds a directory; false when there is no room.
    pub(super) fn add(&mut self, id: u16) -> bool {
        if self.iter().any(|known| known == id) {
            return true;
        }
        match self.ids.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = id;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// Both sets; false when there is no room.
    pub(super) fn add_all(&mut self, other: Self) -> bool {
        other.iter().all(|id| self.add(id))
    }
}

impl<'a> Judge<'a> {
    /// Runs `walk` as a subshell does: directory and variables are as before afterwards.
    pub(super) fn in_subshell<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let places = self.places;
        let variables = self.variables.len();
        let may_skip = self.may_skip;
        let result = walk(self);
        self.places = places;
        self.variables.truncate(variables);
        self.may_skip = may_skip;
        result
    }

    /// Runs `walk` where it may or may not be reached: the directory afterwards may be the old or the new one.
    pub(super) fn perhaps<T>(&mut self, span: Span, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.places;
        let variables = self.variables.len();
        let result = walk(self);
        self.join_places(before, span);
        self.variables.truncate(variables);
        result
    }

    pub(super) fn join_places(&mut self, other: Places, span: Span) {
        if !self.places.add_all(other) {
            self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
        }
    }

    /// Where the command may be.
    pub(crate) const fn place(&self) -> Places {
        self.places
    }

    /// Back to where it was.
    pub(crate) const fn return_to(&mut self, places: Places) {
        self.places = places;
    }

    /// A program first changes into the directory `target` (`git -C`).
    pub(crate) fn change_to(&mut self, target: &Arg<'a>) {
        match target.literal() {
            None => {
                self.report(Code::PathUnknown, target.span, "which directory this is cannot be known", None);
            }
            Some("") => {}
            // The program goes where the symlinks lead, and only then up.
            Some(path) if path.split('/').any(|part| part == "..") => {
                self.report(Code::LostTrack, target.span, "a directory with `..` is not followed here", None);
            }
            Some(path) => {
                let path = path.to_string();
                self.read_path(target);
                self.enter(&path, target.span);
            }
        }
    }

    /// Git looks for a repository from here.
    pub(crate) fn uses_repository(&mut self) {
        for id in self.places.iter() {
            if self.out.effects.directories.is_empty() {
                self.out.effects.directories.push(String::new());
            }
            let known = &mut self.out.effects.repositories;
            if !known.contains(&id) {
                known.push(id);
            }
        }
    }

    /// `cd DIR`: later commands of this shell run there, or here still if it fails.
    pub(super) fn change_directory(&mut self, name: Span, args: &[Arg<'a>]) {
        self.need_one(Condition::CleanEnvironment);
        let mut operands = args.iter();
        let mut target = operands.next();
        if target.and_then(Arg::literal) == Some("--") {
            target = operands.next();
        }
        let Some(target) = target else {
            self.report(Code::PathOutside, name, "without an operand `cd` goes to the home directory", None);
            return;
        };
        if let Some(extra) = operands.next() {
            self.report(Code::TooManyOperands, extra.span, "`cd` takes one directory", None);
            return;
        }
        let Some(path) = target.literal() else {
            self.report(Code::PathUnknown, target.span, "which directory this is cannot be known", None);
            return;
        };
        if path.starts_with('-') || path.is_empty() {
            self.report(Code::LostTrack, target.span, "this form of `cd` is not followed", None);
            return;
        }
        let path = path.to_string();
        self.read_path(target);
        self.enter(&path, target.span);
    }

    /// Moves to `path`, from wherever the command may be.
    pub(super) fn enter(&mut self, path: &str, span: Span) {
        let mut moved = Places::NOWHERE;
        let mut room = true;
        for id in self.places.iter() {
            let directory = join(self.out.effects.directory(id), path);
            room &= self.intern(&normal(&directory)).is_some_and(|new| moved.add(new));
        }
        if !room {
            self.report(Code::LostTrack, span, "changes directory more often than is followed", None);
        }
        self.places = moved;
    }

    /// The index of a directory in the effects.
    pub(super) fn intern(&mut self, directory: &str) -> Option<u16> {
        let directories = &mut self.out.effects.directories;
        if directories.is_empty() {
            directories.push(String::new());
        }
        if let Some(at) = directories.iter().position(|known| known == directory) {
            return u16::try_from(at).ok();
        }
        directories.push(directory.to_string());
        u16::try_from(directories.len() - 1).ok().filter(|id| *id < 256)
    }
}

/// Whether a pattern's path component may match `..`: it begins with a dot, which nothing but a dot matches, and what
/// follows may be one character. Bash 5.2 no longer does this (`globskipdots`), older ones do.
pub(super) fn may_match_parent(component: &str) -> bool {
    let Some(rest) = component.strip_prefix('.') else {
        return false;
    };
    if !rest.contains(['*', '?', '[']) {
        return false;
    }
    let mut single = 0;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => {}
            '.' | '?' => single += 1,
            '[' => {
                // The first character of a set may be the closing bracket itself.
                chars.next();
                if !chars.any(|c| c == ']') {
                    return false;
                }
                single += 1;
            }
            _ => return false,
        }
    }
    single <= 1
}

/// Lexical normal form of a directory, as the shell's own `cd` makes it: without `.` and with `..` cancelled.
pub(super) fn normal(path: &str) -> String {
    let mut stack: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if stack.last().is_some_and(|last| *last != "..") {
                    stack.pop();
                } else if !path.starts_with('/') {
                    stack.push("..");
                }
            }
            part => stack.push(part),
        }
    }
    let joined = stack.join("/");
    if path.starts_with('/') { ["/", &joined].concat() } else { joined }
}

#[cfg(test)]
mod tests {
    use super::may_match_parent;

    #[test]
    fn what_may_match_the_parent_directory() {
        // contract: S9
        for may in [".*", ".?", ".[.]", ".[a.]", ".[!a]", ".[]a.]", "..*", ".*.", ".**"] {
            assert!(may_match_parent(may), "{may}");
        }
        for never in [".", "..", "*", "?.", "[.].", "[id]", ".e*", ".*rc", ".??", ".?.", "...*", ".[a", "a.*"]
        {
            assert!(!may_match_parent(never), "{never}");
        }
    }
}
