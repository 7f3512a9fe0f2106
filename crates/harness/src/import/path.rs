//! Paths in the rules of other agents, in the way of `.gitignore`.

use super::{Carried, Draft, ImportError, Place, pattern_of};
use cmdgate_policy::{Act, Effect, Pattern, Rule};

/// Carries over a rule about files; all of them without a path.
pub(super) fn carry(
    path: Option<&str>,
    act: Act,
    effect: Effect,
    place: &Place<'_>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    if effect != Effect::Allow {
        let texts = path.map_or_else(|| vec!["*".to_owned()], for_tightening);
        let rules = texts
            .iter()
            .map(|text| Ok(Rule::with_pattern(act, effect, pattern_of(text)?)))
            .collect::<Result<Vec<_>, String>>()
            .unwrap_or_else(|_| vec![Rule::with_pattern(act, effect, Pattern::lenient("*"))]);
        let why = "a `*` also crosses folders, and the path counts in every folder";
        return if path.is_none() {
            draft.carry(place, Carried::Exactly, "", rules)
        } else {
            draft.carry(place, Carried::Stricter, why, rules)
        };
    }
    if act == Act::Read {
        let why = "files of the project are read without a question; name other folders in `read_roots`";
        return draft.leave(place, why);
    }
    let Some(path) = path else {
        let rules = vec![Rule::with_pattern(act, effect, Pattern::lenient("*"))];
        return draft.carry(place, Carried::Exactly, "", rules);
    };
    match for_allowing(path) {
        Some(pattern) => {
            draft.carry(place, Carried::Exactly, "", vec![Rule::with_pattern(act, effect, pattern).whole()])
        }
        None => draft.leave(
            place,
            "only paths inside the project are allowed by rules, without `*` before the last component",
        ),
    }
}

/// Patterns, in the way of `.gitignore`, for at least these paths: a folder means all that is in it.
pub(super) fn for_tightening(specifier: &str) -> Vec<String> {
    let (start, path) = if let Some(rest) = specifier.strip_prefix("//") {
        ("/", rest)
    } else if let Some(rest) = specifier.strip_prefix("~/") {
        ("*/", rest)
    } else {
        ("**/", specifier.strip_prefix("./").or(specifier.strip_prefix('/')).unwrap_or(specifier))
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/**").unwrap_or(path);
    let path: String =
        path.chars().map(|c| if matches!(c, '{' | '}') { format!("\\{c}") } else { c.to_string() }).collect();
    let path = path.trim_start_matches("**/").trim_start_matches('!');
    vec![format!("{start}{path}"), format!("{start}{path}/*")]
}

/// A pattern for no other paths than these, all inside the project.
pub(super) fn for_allowing(specifier: &str) -> Option<Pattern> {
    if specifier.starts_with("//")
        || specifier.starts_with('~')
        || specifier.contains(['{', '[', '?', '\\', '!'])
    {
        return None;
    }
    let anchored = specifier.starts_with('/') || specifier.starts_with("./");
    let path = specifier.strip_prefix("./").or(specifier.strip_prefix('/')).unwrap_or(specifier);
    let (folder, last) = path.rsplit_once('/').unwrap_or(("", path));
    if folder.contains('*') || path.split('/').any(|part| matches!(part, "." | ".." | "")) {
        return None;
    }
    match last {
        // All that is in a folder.
        "**" if !folder.is_empty() => Pattern::new(path).ok(),
        // A name, wherever it stands.
        last if folder.is_empty() && !anchored && !last.contains("**") => {
            Pattern::new(format!("**/{last}")).ok().filter(|_| last.starts_with('*') || !last.contains('*'))
        }
        last if !last.contains('*') => Pattern::new(path).ok(),
        _ => None,
    }
}
