//! Versions of agents, and where an agent is found.

use super::home::Home;
use crate::hook::Agent;
use std::fmt;
use std::path::{Path, PathBuf};

/// A version of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64, pub u64, pub u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The first word of a text that is a version.
///
/// ```
/// use cmdgate_harness::install::version::{Version, first_in};
/// assert_eq!(first_in("codex-cli 0.171.0\n"), Some(Version(0, 171, 0)));
/// assert_eq!(first_in("v1.18.33-beta (2026)"), Some(Version(1, 18, 33)));
/// assert_eq!(first_in("no version"), None);
/// ```
pub fn first_in(text: &str) -> Option<Version> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '/')).find_map(|word| {
        let mut numbers = word.trim_start_matches('v').splitn(3, '.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part.get(..end)?.parse::<u64>().ok()
        });
        Some(Version(numbers.next()??, numbers.next()??, numbers.next()??))
    })
}

impl Agent {
    /// The version that the adapter was read from; none where the vendor's documentation names none.
    pub const fn read_from(self) -> Option<Version> {
        match self {
            Self::ClaudeCode => Some(Version(2, 1, 332)),
            Self::Codex => Some(Version(0, 171, 0)),
            Self::Gemini => Some(Version(0, 61, 0)),
            Self::Cursor => Some(Version(3, 9, 16)),
            Self::Copilot => Some(Version(1, 0, 102)),
            Self::Opencode => Some(Version(1, 18, 33)),
            Self::Windsurf => None,
            Self::Cline => Some(Version(3, 0, 65)),
            Self::Goose => Some(Version(1, 52, 0)),
        }
    }

    /// The first version whose hooks do all that the adapter relies on, as far as its history says.
    pub const fn oldest(self) -> Version {
        match self {
            // From here on an allow of a hook does not beat a deny of the user's own rules.
            Self::ClaudeCode => Version(2, 1, 77),
            // Hooks are on by default.
            Self::Codex => Version(0, 124, 0),
            Self::Cursor => Version(1, 7, 0),
            // Deny and changed arguments.
            Self::Copilot => Version(0, 0, 396),
            // Plugins can deny.
            Self::Goose => Version(1, 38, 0),
            Self::Gemini | Self::Opencode | Self::Windsurf | Self::Cline => Version(0, 0, 0),
        }
    }

    /// The names of its program.
    pub const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["claude"],
            Self::Codex => &["codex"],
            Self::Gemini => &["gemini"],
            Self::Cursor => &["cursor"],
            Self::Copilot => &["copilot"],
            Self::Opencode => &["opencode"],
            Self::Windsurf => &["windsurf"],
            Self::Cline => &["cline"],
            Self::Goose => &["goose"],
        }
    }

    /// Where its settings are, if it has been used here.
    pub fn settings(self, home: &Home, project: &Path) -> Vec<PathBuf> {
        let mut places = vec![home.settings(self)];
        match self {
            Self::Cline => places.push(home.path().join("Documents/Cline")),
            Self::Goose => places.insert(0, home.path().join(".config/goose")),
            Self::ClaudeCode
            | Self::Codex
            | Self::Gemini
            | Self::Cursor
            | Self::Copilot
            | Self::Opencode
            | Self::Windsurf => {}
        }
        let directory = super::home::of_project(self, project);
        match self {
            // Others keep their files in it as well.
            Self::Copilot => places.extend([directory.join("hooks"), directory.join("copilot")]),
            Self::ClaudeCode
            | Self::Codex
            | Self::Gemini
            | Self::Cursor
            | Self::Opencode
            | Self::Windsurf
            | Self::Cline
            | Self::Goose => places.push(directory),
        }
        places.dedup();
        places
    }
}
