//! opencode: `permission` of the older configuration, a map, and `permissions` of the newer one, a list
//! (opencode.ai/docs/permissions). The last rule that matches counts, in the order of the file; `*` is any text and `?`
//! one character, and the whole text of a command has to match.

use super::json::Document;
use super::ordered::{Ranked, carry};
use super::text::{Piece, Wild};
use super::{Draft, ImportError, Place, SourceFile, path};
use cmdgate_policy::{Act, Effect, Pattern, escape};
use jsonc_parser::ast::{Object, ObjectProp, Value};

const ASKS: &str =
    "opencode matches the whole text of a command, with variables, redirections and programs that run it";
const ASKS_WITH: &[&str] =
    &["assignment", "command", "ionice", "nice", "redirect", "stdbuf", "time", "timeout"];

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let documents: Vec<_> = files.iter().map(Document::read).collect::<Result<_, _>>()?;
    let mut merged = Merged::default();
    // Of the agent that works when none is named: on top of the others.
    let mut build = Merged::default();
    let mut listed = Vec::new();
    for (document, settings) in &documents {
        merged.tools(document, settings)?;
        merged.permission(document, settings)?;
        let list = document.list(settings, "permissions")?;
        listed.extend(list.iter().map(|value| (document, value)));
    }
    // `mode` is the older name of `agent`, and comes on top of it.
    for key in ["agent", "agents", "mode"] {
        for (document, settings) in &documents {
            let Some(agents) = document.object(settings, key)? else { continue };
            for agent in &agents.properties {
                document.get(agents, agent.name.as_str())?;
                let name = agent.name.as_str();
                let place = Place::new(document.file, document.line(agent), format!("{key} {name}"));
                let why = if let Value::Object(of) = &agent.value
                    && name == "build"
                    && key != "agents"
                {
                    build.tools(document, of)?;
                    build.permission(document, of)?;
                    "what it denies or asks about counts for every agent here; what it allows is left out"
                } else {
                    "rules of single agents are not told apart here"
                };
                draft.leave(&place, why)?;
            }
        }
    }
    if let (Some(leaf), Some((document, value))) = (merged.any().or_else(|| build.any()), listed.first()) {
        // No release reads both, so which of them would count is not known.
        let at = format!("{}:{}", leaf.document.file.name, leaf.document.line(leaf.at));
        return Err(document
            .wrong(*value, format!("`permissions` stands beside the older form at {at}; keep one of them")));
    }
    let mut rules = Vec::new();
    let mut reader = Reader { rules: &mut rules, draft, only_strict: false };
    for (tool, pattern, leaf) in merged.in_order() {
        reader.rule(leaf.document, tool, pattern, leaf.at, leaf.value, false)?;
    }
    reader.only_strict = true;
    for (tool, pattern, leaf) in build.in_order() {
        reader.rule(leaf.document, tool, pattern, leaf.at, leaf.value, false)?;
    }
    reader.only_strict = false;
    for (document, value) in listed {
        reader.entry(document, value)?;
    }
    carry(&rules, ASKS, draft)
}

/// A value and where it stands.
#[derive(Clone, Copy)]
struct Leaf<'d, 'f> {
    document: &'d Document<'f>,
    at: &'d ObjectProp<'f>,
    value: Effected<'d, 'f>,
}

/// What a rule answers: a text in the file, or a switch of the oldest form.
#[derive(Clone, Copy)]
enum Effected<'d, 'f> {
    Value(&'d Value<'f>),
    Switch(bool),
}

enum Tool<'d, 'f> {
    One(Leaf<'d, 'f>),
    Patterns(Vec<(&'d str, Leaf<'d, 'f>)>),
}

/// The maps of all files as one, in the way of opencode 1.18.33: a key stays where the first file has it and gets what
/// the last one says. So what a later file says about a key does not come after all of an earlier one.
#[derive(Default)]
struct Merged<'d, 'f> {
    tools: Vec<(&'d str, Tool<'d, 'f>)>,
    /// `"tools": {"bash": false}`: what it says comes first, and any rule for the tool replaces it.
    switches: Vec<(&'d str, Leaf<'d, 'f>)>,
}

impl<'d, 'f> Merged<'d, 'f> {
    /// `"permission": {"bash": {"git *": "allow"}, "edit": "ask"}`, or one answer for everything.
    fn permission(
        &mut self,
        document: &'d Document<'f>,
        settings: &'d Object<'f>,
    ) -> Result<(), ImportError> {
        let Some(value) = document.get(settings, "permission")? else { return Ok(()) };
        let Value::Object(tools) = value else {
            if let Some(at) =
                settings.properties.iter().find(|property| property.name.as_str() == "permission")
            {
                self.set("*", Tool::One(Leaf { document, at, value: Effected::Value(value) }));
            }
            return Ok(());
        };
        for tool in &tools.properties {
            document.get(tools, tool.name.as_str())?;
            let Value::Object(patterns) = &tool.value else {
                let leaf = Leaf { document, at: tool, value: Effected::Value(&tool.value) };
                self.set(tool.name.as_str(), Tool::One(leaf));
                continue;
            };
            let mut listed = Vec::new();
            for pattern in &patterns.properties {
                document.get(patterns, pattern.name.as_str())?;
                let value = Effected::Value(&pattern.value);
                listed.push((pattern.name.as_str(), Leaf { document, at: pattern, value }));
            }
            self.set(tool.name.as_str(), Tool::Patterns(listed));
        }
        Ok(())
    }

    /// `"tools": {"bash": false}`
    fn tools(&mut self, document: &'d Document<'f>, settings: &'d Object<'f>) -> Result<(), ImportError> {
        let Some(tools) = document.object(settings, "tools")? else { return Ok(()) };
        for tool in &tools.properties {
            document.get(tools, tool.name.as_str())?;
            let Value::BooleanLit(is_on) = &tool.value else {
                return Err(document.wrong(tool, "a tool is switched on or off by true or false"));
            };
            let name = match tool.name.as_str() {
                "write" | "patch" => "edit",
                name => name,
            };
            let leaf = Leaf { document, at: tool, value: Effected::Switch(is_on.value) };
            match self.switches.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = leaf,
                None => self.switches.push((name, leaf)),
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &'d str, given: Tool<'d, 'f>) {
        match (self.tools.iter_mut().find(|(known, _)| *known == name), given) {
            (None, given) => self.tools.push((name, given)),
            (Some((_, Tool::Patterns(known))), Tool::Patterns(given)) => {
                for (pattern, leaf) in given {
                    match known.iter_mut().find(|(known, _)| *known == pattern) {
                        Some((_, known)) => *known = leaf,
                        None => known.push((pattern, leaf)),
                    }
                }
            }
            (Some((_, known)), given) => *known = given,
        }
    }

    fn any(&self) -> Option<Leaf<'d, 'f>> {
        self.in_order().into_iter().map(|(_, _, leaf)| leaf).next()
    }

    /// Every rule, the last of which counts.
    fn in_order(&self) -> Vec<(&'d str, &'d str, Leaf<'d, 'f>)> {
        let mut all = Vec::new();
        let mut add = |name: &'d str, tool: &Tool<'d, 'f>| match tool {
            Tool::One(leaf) => all.push((name, "*", *leaf)),
            Tool::Patterns(patterns) => {
                all.extend(patterns.iter().map(|(pattern, leaf)| (name, *pattern, *leaf)));
            }
        };
        for (name, leaf) in &self.switches {
            match self.tools.iter().find(|(known, _)| known == name) {
                Some((_, tool)) => add(name, tool),
                None => add(name, &Tool::One(*leaf)),
            }
        }
        for (name, tool) in &self.tools {
            if !self.switches.iter().any(|(known, _)| known == name) {
                add(name, tool);
            }
        }
        all
    }
}

struct Reader<'f, 'r> {
    rules: &'r mut Vec<Ranked<'f>>,
    draft: &'r mut Draft,
    /// What allows is left out: it only takes out of what denies or asks among the same rules.
    only_strict: bool,
}

impl<'f> Reader<'f, '_> {
    /// `{"action": "shell", "resource": "git status *", "effect": "allow"}`
    fn entry(&mut self, document: &Document<'f>, value: &Value<'_>) -> Result<(), ImportError> {
        let Value::Object(entry) = value else {
            return Err(document.wrong(value, "a rule is an object with `action`, `resource` and `effect`"));
        };
        let need = |key: &str| {
            let found = document.get(entry, key)?;
            found.ok_or_else(|| document.wrong(value, format!("the rule has no `{key}`")))
        };
        let action = document.text(need("action")?)?.value.to_string();
        let resource = document.text(need("resource")?)?.value.to_string();
        let effect = need("effect")?;
        if let Some(other) = Document::others(entry, &["action", "resource", "effect"]).next() {
            return Err(document.wrong(other, format!("`{}` is not known in a rule", other.name.as_str())));
        }
        self.rule(document, &action, &resource, value, Effected::Value(effect), true)
    }

    /// `bare`: a ` *` at the end may stand for nothing.
    fn rule(
        &mut self,
        document: &Document<'f>,
        tool: &str,
        pattern: &str,
        at: &impl jsonc_parser::common::Ranged,
        effect: Effected<'_, '_>,
        bare: bool,
    ) -> Result<(), ImportError> {
        let effect = match effect {
            Effected::Switch(true) => Effect::Allow,
            Effected::Switch(false) => Effect::Deny,
            Effected::Value(value) => {
                let text = document.text(value)?;
                match &*text.value {
                    "allow" => Effect::Allow,
                    "ask" => Effect::Ask,
                    "deny" => Effect::Deny,
                    other => {
                        let what = format!("`{}` is not one of allow, ask, deny", super::one_line(other));
                        return Err(document.wrong(text, what));
                    }
                }
            }
        };
        let place = Place::new(document.file, document.line(at), format!("{tool} {pattern}: {effect}"));
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
        // Denied is also the command alone, as 1.18.33 has it; allowed it is only in the newer form, for older releases
        // asked about it.
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
            folder: 0,
            except: &[],
            spares_only: self.only_strict,
            stricter: (!bare && effect == Effect::Allow && pattern.ends_with(" *"))
                .then_some("the command alone is asked about, as in older releases"),
        });
        Ok(())
    }
}

/// Whether a tool's pattern is for the tool of this name.
fn names(pattern: &str, name: &str) -> bool {
    let pattern = pattern.strip_suffix(" *").unwrap_or(pattern);
    let escaped = escape(pattern).replace("\\*", "*").replace("\\?", "?");
    Pattern::lenient(escaped).matches(Act::Exec, name)
}
