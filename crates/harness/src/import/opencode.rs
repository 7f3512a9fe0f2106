//! opencode: `permission` of the older configuration, a map, and `permissions` of the newer one, a list
//! (opencode.ai/docs/permissions). The last rule that matches counts, in the order of the file; `*` is any text and `?`
//! one character, and the whole text of a command has to match.

use super::json::Document;
use super::ordered::{Ranked, carry};
use super::text::{Piece, Wild};
use super::{Draft, ImportError, Place, SourceFile, path};
use cmdgate_policy::{Act, Effect, Pattern, escape};
use jsonc_parser::ast::{Object, Value};

const ASKS: &str =
    "opencode matches the whole text of a command, with variables, redirections and programs that run it";
const ASKS_WITH: &[&str] =
    &["assignment", "command", "ionice", "nice", "redirect", "stdbuf", "time", "timeout"];

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let mut rules = Vec::new();
    for file in files {
        let (document, settings) = Document::read(file)?;
        let mut reader = Reader { document, rules: &mut rules, draft };
        match reader.document.get(&settings, "permission")? {
            None => {}
            Some(Value::Object(tools)) => reader.map(tools)?,
            Some(value) => reader.rule("*", "*", value, value, false)?,
        }
        for value in reader.document.list(&settings, "permissions")? {
            reader.entry(value)?;
        }
        for key in ["agent", "agents", "mode"] {
            if let Some(value) = reader.document.get(&settings, key)? {
                let place = Place::new(file, reader.document.line(value), key);
                reader.draft.leave(&place, "rules of single agents are not told apart here")?;
            }
        }
    }
    carry(&rules, ASKS, draft)
}

struct Reader<'f, 'd> {
    document: Document<'f>,
    rules: &'d mut Vec<Ranked<'f>>,
    draft: &'d mut Draft,
}

impl Reader<'_, '_> {
    /// `"permission": {"bash": {"git *": "allow"}, "edit": "ask"}`
    fn map(&mut self, tools: &Object<'_>) -> Result<(), ImportError> {
        for tool in &tools.properties {
            self.document.get(tools, tool.name.as_str())?;
            let Value::Object(patterns) = &tool.value else {
                self.rule(tool.name.as_str(), "*", tool, &tool.value, false)?;
                continue;
            };
            for pattern in &patterns.properties {
                self.document.get(patterns, pattern.name.as_str())?;
                self.rule(tool.name.as_str(), pattern.name.as_str(), pattern, &pattern.value, false)?;
            }
        }
        Ok(())
    }

    /// `{"action": "shell", "resource": "git status *", "effect": "allow"}`
    fn entry(&mut self, value: &Value<'_>) -> Result<(), ImportError> {
        let Value::Object(entry) = value else {
            return Err(self
                .document
                .wrong(value, "a rule is an object with `action`, `resource` and `effect`"));
        };
        let need = |key: &str| {
            let found = self.document.get(entry, key)?;
            found.ok_or_else(|| self.document.wrong(value, format!("the rule has no `{key}`")))
        };
        let action = self.document.text(need("action")?)?.value.to_string();
        let resource = self.document.text(need("resource")?)?.value.to_string();
        let effect = need("effect")?;
        if let Some(other) = Document::others(entry, &["action", "resource", "effect"]).next() {
            return Err(self
                .document
                .wrong(other, format!("`{}` is not known in a rule", other.name.as_str())));
        }
        self.rule(&action, &resource, value, effect, true)
    }

    /// `bare`: a ` *` at the end may stand for nothing.
    fn rule(
        &mut self,
        tool: &str,
        pattern: &str,
        at: &impl jsonc_parser::common::Ranged,
        effect: &Value<'_>,
        bare: bool,
    ) -> Result<(), ImportError> {
        let text = self.document.text(effect)?;
        let effect = match &*text.value {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            "deny" => Effect::Deny,
            other => {
                let what = format!("`{}` is not one of allow, ask, deny", super::one_line(other));
                return Err(self.document.wrong(text, what));
            }
        };
        let file = self.document.file;
        let place = Place::new(file, self.document.line(at), format!("{tool} {pattern}: {effect}"));
        let is = |name: &str| names(tool, name);
        if !is("bash") && !is("shell") {
            let everything = pattern == "*";
            return if is("edit") && effect != Effect::Allow {
                path::carry(Some(pattern).filter(|_| !everything), Act::Write, effect, &place, self.draft)
            } else if is("read") && effect != Effect::Allow {
                path::carry(Some(pattern).filter(|_| !everything), Act::Read, effect, &place, self.draft)
            } else if is("edit") {
                self.draft.leave(&place, "write a rule for the files that may be written")
            } else {
                self.draft.leave(
                    &place,
                    "it is about another tool than commands, or allows what is allowed already",
                )
            };
        }
        let mut wild = Wild::parse(pattern, '*', Some('?'));
        // Denied is also the command alone; allowed it is only where that is documented.
        if (bare || effect != Effect::Allow)
            && let Some(stem) = pattern.strip_suffix(" *")
            && !stem.trim().is_empty()
        {
            wild = Wild { bound: true, ..Wild::parse(stem, '*', Some('?')) };
        }
        if wild.pieces.is_empty() {
            wild.pieces.push(Piece::Text(String::new()));
        }
        let rank = u64::try_from(self.rules.len()).unwrap_or(u64::MAX);
        self.rules.push(Ranked {
            place,
            effect,
            wilds: vec![wild],
            rank,
            reason: None,
            asks_with: ASKS_WITH,
            stricter: (!bare && pattern.ends_with(" *")).then_some("it also holds for the command alone"),
        });
        Ok(())
    }
}

/// Whether a tool's pattern is for the tool of this name.
fn names(pattern: &str, name: &str) -> bool {
    let escaped = escape(pattern).replace("\\*", "*").replace("\\?", "?");
    Pattern::lenient(escaped).matches(Act::Exec, name)
}
