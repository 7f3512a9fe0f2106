//! Where a path lies, judged by its text alone.

use alloc::string::String;
use alloc::vec::Vec;

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Inside the project, or inside a directory that the caller named as readable.
    Inside,
    /// Inside, but only because a `..` component is cancelled by the one before it.
    InsideThroughParent,
    /// `/dev/null`, which holds nothing.
    NullDevice,
    /// Anywhere else.
    Outside,
}

/// The project as text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Project<'a> {
    pub(crate) root: Option<&'a str>,
    pub(crate) cwd: Option<&'a str>,
    pub(crate) read_roots: &'a [&'a str],
}

impl Project<'_> {
    /// Where `path` lies when it is used in `directory`, which is relative to the working directory or absolute.
    pub(crate) fn place(&self, directory: &str, path: &str) -> Place {
        if path == "/dev/null" {
            return Place::NullDevice;
        }
        if path.contains('\0') {
            return Place::Outside;
        }
        let has_parent = path.split('/').any(|part| part == "..");
        let plain = !has_parent && !path.starts_with('/') && directory.is_empty();
        if plain && (self.cwd.is_none() || self.cwd == self.root) {
            return Place::Inside;
        }
        let through_parent = if has_parent { Place::InsideThroughParent } else { Place::Inside };
        let mut stack: Vec<&str> = Vec::with_capacity(16);
        let mut absolute = false;
        if path.starts_with('/') {
            absolute = true;
        } else {
            if !directory.starts_with('/')
                && let Some(cwd) = self.cwd.or(self.root)
            {
                absolute = true;
                if !push(&mut stack, cwd) {
                    return Place::Outside;
                }
            }
            absolute |= directory.starts_with('/');
            if !push(&mut stack, directory) {
                return Place::Outside;
            }
        }
        if !push(&mut stack, path) {
            return Place::Outside;
        }
        if !absolute {
            // Neither root nor working directory is known: relative and never above where it began.
            return through_parent;
        }
        let inside = |root: &str| {
            root.starts_with('/') && {
                let mut want = root.split('/').filter(|part| !part.is_empty() && *part != ".");
                let mut have = stack.iter();
                want.all(|part| have.next() == Some(&part))
            }
        };
        if self.root.is_some_and(inside) || self.read_roots.iter().copied().any(inside) {
            through_parent
        } else {
            Place::Outside
        }
    }
}

/// Adds the components of `path`, cancelling `..`; false when it climbs above where it began.
fn push<'a>(stack: &mut Vec<&'a str>, path: &'a str) -> bool {
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if stack.pop().is_none() {
                    return false;
                }
            }
            part => stack.push(part),
        }
    }
    true
}

/// `directory` followed by `path`, as a path relative to the working directory or absolute.
pub(crate) fn join(directory: &str, path: &str) -> String {
    let mut joined = String::with_capacity(directory.len() + path.len() + 1);
    if !path.starts_with('/') && !directory.is_empty() {
        joined.push_str(directory);
        if !directory.ends_with('/') {
            joined.push('/');
        }
    }
    joined.push_str(path);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: Project<'static> =
        Project { root: Some("/home/u/p"), cwd: Some("/home/u/p/sub"), read_roots: &["/opt/docs"] };

    #[test]
    fn places() {
        // contract: S9
        for (path, place) in [
            ("a", Place::Inside),
            ("../a", Place::InsideThroughParent),
            ("../../a", Place::Outside),
            ("../../p/a", Place::InsideThroughParent),
            ("/home/u/p", Place::Inside),
            ("/home/u/p/", Place::Inside),
            ("/home/u/pp", Place::Outside),
            ("/home/u/p/../x", Place::Outside),
            ("//home/u/p/x", Place::Inside),
            ("/opt/docs/x", Place::Inside),
            ("/dev/null", Place::NullDevice),
            ("/dev/null/x", Place::Outside),
            ("/etc/passwd", Place::Outside),
            ("/../../..", Place::Outside),
        ] {
            assert_eq!(PROJECT.place("", path), place, "{path}");
        }
    }

    #[test]
    fn without_root_absolute_is_outside() {
        // contract: S9
        let project = Project { root: None, cwd: None, read_roots: &[] };
        assert_eq!(project.place("", "a/b"), Place::Inside);
        assert_eq!(project.place("", "a/../b"), Place::InsideThroughParent);
        assert_eq!(project.place("", ".."), Place::Outside);
        assert_eq!(project.place("sub", "../a"), Place::InsideThroughParent);
        assert_eq!(project.place("sub", "../../a"), Place::Outside);
        assert_eq!(project.place("", "/a"), Place::Outside);
    }
}
