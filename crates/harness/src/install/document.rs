//! The agents' settings: JSON in which comments and trailing commas are allowed, or TOML.

use crate::jsonc::WITH_COMMENTS;
use jsonc_parser::cst::CstRootNode;
use jsonc_parser::{CollectOptions, ParseResult};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Settings longer than this, in bytes, are not read.
const LONGEST: u64 = 16 * 1024 * 1024;
/// Settings nested deeper than this are not read.
const DEEPEST: usize = 128;

/// A file that cannot be read or understood.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be read: {what}")]
pub struct Trouble {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub what: String,
}

impl Trouble {
    pub(super) fn new(path: &Path, what: &dyn std::fmt::Display) -> Self {
        Self { path: path.to_path_buf(), what: what.to_string() }
    }
}

/// The text of a file; none when there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, Trouble> {
    let bad = |what: &str| Err(Trouble::new(path, &what));
    match crate::read::text(path, LONGEST) {
        Ok(text) if text.starts_with('\u{feff}') => {
            bad("it begins with a byte order mark, which few agents read: save it as UTF-8 without one")
        }
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            if fs::symlink_metadata(path).is_ok() {
                bad("it is a link that leads nowhere")
            } else {
                Ok(None)
            }
        }
        Err(error) => Err(Trouble::new(path, &error)),
    }
}

/// The value that the text of a settings file stands for; null when it is blank.
pub(super) fn value(path: &Path, text: &str) -> Result<Value, Trouble> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return toml::from_str(text).map_err(|error| Trouble::new(path, &error.message()));
    }
    let root = parse(path, text)?;
    Ok(root.to_serde_value().unwrap_or(Value::Null))
}

/// The text as a tree that can be changed.
pub(super) fn parse(path: &Path, text: &str) -> Result<CstRootNode, Trouble> {
    shallow(path, text)?;
    CstRootNode::parse(text, &WITH_COMMENTS).map_err(|error| Trouble::new(path, &error))
}

/// The text as a tree that knows where everything stands.
pub(super) fn tree<'t>(path: &Path, text: &'t str) -> Result<ParseResult<'t>, Trouble> {
    shallow(path, text)?;
    let tokens = CollectOptions { tokens: true, ..CollectOptions::default() };
    jsonc_parser::parse_to_ast(text, &tokens, &WITH_COMMENTS).map_err(|error| Trouble::new(path, &error))
}

fn shallow(path: &Path, text: &str) -> Result<(), Trouble> {
    if depth(text) > DEEPEST {
        return Err(Trouble::new(path, &format!("it is nested deeper than {DEEPEST}")));
    }
    Ok(())
}

/// An upper bound of the nesting: brackets inside texts and comments count as well.
fn depth(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a file of Codex holds hooks, and not just what is remembered about them.
pub(super) fn holds_hooks(file: &Path) -> bool {
    let Ok(Some(text)) = read(file) else { return false };
    let Ok(value) = value(file, &text) else { return false };
    let hooks = value.get("hooks").and_then(Value::as_object);
    hooks.is_some_and(|hooks| hooks.keys().any(|key| key != "state"))
}

/// JSON as this program writes it.
pub(super) fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
