//! Edits of settings that keep everything else as its author wrote it: order, comments, indentation.

use super::document::{self, Trouble};
use super::{InstallError, Plan, found};
use crate::hook::Agent;
use jsonc_parser::ast::{ObjectProp, Value as Tree};
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp};
use jsonc_parser::tokens::{Token, TokenAndRange};
use serde_json::Value;
use std::ops::Range;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table};

impl Plan {
    pub(super) fn unreadable(&self, trouble: Trouble) -> InstallError {
        InstallError::Unreadable {
            path: trouble.path,
            what: trouble.what,
            entry: self.with(&self.file, None).unwrap_or_else(|_| self.whole()),
        }
    }

    fn shape(&self, what: impl Into<String>) -> InstallError {
        InstallError::Shape { path: self.file.clone(), what: what.into() }
    }

    /// The text with the entries in their places, each once; or without any.
    pub(super) fn edit_json(&self, before: &str, install: bool) -> Result<String, InstallError> {
        let mut text = before.to_owned();
        // Each turn takes one handler away, and there are only so many.
        while let Some(cuts) = self.next_cut(&text, install)? {
            text = cut(&text, cuts);
        }
        if install { self.put(&text) } else { Ok(text) }
    }

    /// Puts every entry into its event's list, in the place of the one that was there.
    fn put(&self, text: &str) -> Result<String, InstallError> {
        let root = document::parse(&self.file, text).map_err(|trouble| self.unreadable(trouble))?;
        let top = match root.value() {
            None => root.object_value_or_create().ok_or_else(|| self.shape("it cannot hold an object"))?,
            Some(value) => value.as_object().ok_or_else(|| self.shape("it is not an object"))?,
        };
        self.without_twins(&top, "the settings")?;
        if matches!(self.agent, Agent::Cursor | Agent::Copilot) && top.get("version").is_none() {
            top.insert(0, "version", CstInputValue::Number("1".to_owned()));
        }
        let hooks =
            top.object_value_or_create("hooks").ok_or_else(|| self.shape("`hooks` is not an object"))?;
        self.without_twins(&hooks, "`hooks`")?;
        for (event, entry) in self.entries().as_object().into_iter().flatten() {
            let list = hooks
                .array_value_or_create(event)
                .ok_or_else(|| self.shape(format!("the hooks of {event} are not a list")))?;
            let known = list.elements().into_iter().find_map(|node| {
                let value = node.to_serde_value()?;
                self.is_only_ours(&value).then_some((node, value))
            });
            match known {
                None => {
                    list.append(input(entry));
                }
                // As it is, with its comments, when nothing is to be changed.
                Some((_, value)) if value == *entry => {}
                Some((node, _)) => {
                    if let Some(object) = node.as_object() {
                        object.replace_with(input(entry));
                    }
                }
            }
        }
        Ok(root.to_string())
    }

    /// An object in which a key stands twice is read differently by different readers.
    fn without_twins(&self, object: &CstObject, what: &str) -> Result<(), InstallError> {
        let mut names: Vec<String> =
            object.properties().iter().filter_map(CstObjectProp::decoded_name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(pair) => {
                let name = pair.first().map_or("", String::as_str);
                Err(self.shape(format!("the key {name:?} stands twice in {what}")))
            }
            None => Ok(()),
        }
    }

    /// What to cut so that there is one handler of this program less; none when there is none left to cut.
    ///
    /// When installing, one entry of each event stays, to be kept or replaced. Lists and objects that become empty go with
    /// what was in them, unless a comment is left there.
    fn next_cut(&self, text: &str, install: bool) -> Result<Option<Vec<Range<usize>>>, InstallError> {
        let parsed = document::tree(&self.file, text).map_err(|trouble| self.unreadable(trouble))?;
        let tokens = parsed.tokens.unwrap_or_default();
        let Some(Tree::Object(top)) = &parsed.value else { return Ok(None) };
        let value_of = |tree: &Tree<'_>| Value::from(tree.clone());
        let entries = self.entries();
        for property in top.properties.iter().filter(|property| property.name.as_str() == "hooks") {
            let Tree::Object(hooks) = &property.value else { continue };
            for event in &hooks.properties {
                let Tree::Array(list) = &event.value else { continue };
                let mut kept = !(install && entries.get(event.name.as_str()).is_some());
                for element in &list.elements {
                    if self.is_only_ours(&value_of(element)) {
                        if !kept {
                            kept = true;
                            continue;
                        }
                        let mut range = range_of(&element.range());
                        if !install && is_plain(text, event) && is_all(text, &list.range, &range) {
                            range = range_of(&event.range);
                            if is_plain(text, property) && is_all(text, &hooks.range, &range) {
                                range = range_of(&property.range);
                            }
                        }
                        return Ok(Some(with_comma(&tokens, range)));
                    }
                    let Tree::Object(element) = element else { continue };
                    let inner = element.properties.iter().find(|property| property.name.as_str() == "hooks");
                    let Some(Tree::Array(inner)) = inner.map(|property| &property.value) else { continue };
                    let mut ours =
                        inner.elements.iter().filter(|one| found::is_ours(&value_of(one), self.agent));
                    if let Some(handler) = ours.next() {
                        return Ok(Some(with_comma(&tokens, range_of(&handler.range()))));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether an entry runs this program's hook and nothing else.
    fn is_only_ours(&self, entry: &Value) -> bool {
        let inner = entry.get("hooks").and_then(Value::as_array);
        found::is_ours(entry, self.agent)
            || inner.is_some_and(|inner| {
                !inner.is_empty() && inner.iter().all(|one| found::is_ours(one, self.agent))
            })
    }

    /// The same for hooks that are kept in TOML.
    pub(super) fn edit_toml(&self, before: &str, install: bool) -> Result<String, InstallError> {
        let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| {
            self.unreadable(Trouble::new(&self.file, &error.message()))
        })?;
        if !install && document.get("hooks").is_none() {
            return Ok(before.to_owned());
        }
        let on_one_line = document.get("hooks").is_some_and(Item::is_inline_table);
        let hooks = document
            .entry("hooks")
            .or_insert_with(|| {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            })
            .as_table_like_mut()
            .ok_or_else(|| self.shape("`hooks` is not a table"))?;
        let entries = self.entries();
        let names: Vec<String> = hooks.iter().map(|(name, _)| name.to_owned()).collect();
        let mut same = Vec::new();
        for name in names.iter().filter(|name| *name != "state") {
            let Some(item) = hooks.get_mut(name) else { continue };
            // One entry that is already as it should be stays, with its comments and in its place.
            let wanted = entries.get(name).filter(|_| install);
            if self.take_toml(item, wanted) {
                same.push(name.clone());
            }
            let empty = match item {
                Item::ArrayOfTables(list) => list.is_empty(),
                Item::Value(value) => value.as_array().is_some_and(Array::is_empty),
                Item::None | Item::Table(_) => false,
            };
            if empty && !install {
                hooks.remove(name);
            }
        }
        for (event, entry) in entries.as_object().into_iter().flatten().filter(|_| install) {
            if same.contains(event) {
                continue;
            }
            let item = hooks.entry(event).or_insert_with(|| {
                if on_one_line {
                    Item::Value(toml_edit::Value::Array(Array::new()))
                } else {
                    Item::ArrayOfTables(ArrayOfTables::new())
                }
            });
            match item {
                Item::ArrayOfTables(list) => list.push(table(entry)),
                Item::Value(value) => {
                    let list = value
                        .as_array_mut()
                        .ok_or_else(|| self.shape(format!("the hooks of {event} are not a list")))?;
                    list.push(inline(entry));
                }
                Item::None | Item::Table(_) => {
                    return Err(self.shape(format!("the hooks of {event} are not a list")));
                }
            }
        }
        if !install && hooks.is_empty() {
            document.remove("hooks");
        }
        Ok(document.to_string())
    }

    /// Takes the handlers of this program out of one event's list; true when the one that is wanted stayed.
    fn take_toml(&self, item: &mut Item, wanted: Option<&Value>) -> bool {
        let mut stayed = false;
        let mut keep = |entry: &Value| {
            let as_wanted = !stayed && wanted == Some(entry);
            stayed |= as_wanted;
            as_wanted || !self.is_only_ours(entry)
        };
        match item {
            Item::ArrayOfTables(list) => {
                list.retain(|entry| keep(&value_of(&Item::Table(entry.clone()))));
            }
            Item::Value(value) => {
                if let Some(list) = value.as_array_mut() {
                    list.retain(|entry| keep(&value_of(&Item::Value(entry.clone()))));
                }
            }
            Item::None | Item::Table(_) => {}
        }
        // What is left may have a handler of this program beside those of others.
        if let Item::ArrayOfTables(list) = item {
            for entry in list.iter_mut() {
                let whole = value_of(&Item::Table(entry.clone()));
                if self.is_only_ours(&whole) {
                    continue;
                }
                match entry.get_mut("hooks") {
                    Some(Item::ArrayOfTables(inner)) => {
                        inner.retain(|one| !found::is_ours(&value_of(&Item::Table(one.clone())), self.agent));
                    }
                    Some(Item::Value(inner)) => {
                        if let Some(inner) = inner.as_array_mut() {
                            inner.retain(|one| {
                                !found::is_ours(&value_of(&Item::Value(one.clone())), self.agent)
                            });
                        }
                    }
                    Some(Item::None | Item::Table(_)) | None => {}
                }
            }
        }
        stayed
    }
}

fn range_of(range: &jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}

/// Whether nothing but a colon stands between the name of a property and its value.
fn is_plain(text: &str, property: &ObjectProp<'_>) -> bool {
    text.get(property.name.range().end..property.value.range().start)
        .is_some_and(|text| text.chars().all(|c| c.is_whitespace() || c == ':'))
}

/// Whether there is nothing but this between the brackets around it, a comma aside.
fn is_all(text: &str, around: &jsonc_parser::common::Range, range: &Range<usize>) -> bool {
    let blank = |from: usize, to: usize| {
        text.get(from..to).is_some_and(|text| text.chars().all(|c| c.is_whitespace() || c == ','))
    };
    blank(around.start + 1, range.start) && blank(range.end, around.end.saturating_sub(1))
}

/// A member of a list or object with the comma behind it, or the one before it when it is the last.
fn with_comma(tokens: &[TokenAndRange<'_>], range: Range<usize>) -> Vec<Range<usize>> {
    let behind = tokens.iter().find(|token| token.range.start >= range.end);
    let before = tokens.iter().rev().find(|token| token.range.end <= range.start);
    let comma = [behind, before].into_iter().flatten().find(|token| token.token == Token::Comma);
    let mut cuts = vec![range];
    cuts.extend(comma.map(|token| range_of(&token.range)));
    cuts
}

/// The text without these ranges, the first of which takes its lines with it when nothing else is left on them.
fn cut(text: &str, mut cuts: Vec<Range<usize>>) -> String {
    let first = cuts.first().map_or(0, |range| range.start);
    cuts.sort_by_key(|range| std::cmp::Reverse(range.start));
    let mut left = text.to_owned();
    let mut place = first;
    for range in cuts {
        if range.end <= first {
            place -= range.len();
        }
        left.replace_range(range, "");
    }
    let start = left.get(..place).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
    let end = left.get(place..).and_then(|text| text.find('\n')).map(|at| place + at + 1);
    if let Some(end) = end
        && start > 0
        && left.get(start..end).is_some_and(|line| line.trim().is_empty())
    {
        left.replace_range(start..end, "");
    }
    left
}

/// A JSON value for the tree that keeps comments.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => CstInputValue::Bool(*bool),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(object) => {
            CstInputValue::Object(object.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

/// A TOML item as JSON, for comparing.
fn value_of(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_of_value(value),
        Item::Table(table) => {
            Value::Object(table.iter().map(|(key, item)| (key.to_owned(), value_of(item))).collect())
        }
        Item::ArrayOfTables(list) => {
            Value::Array(list.iter().map(|table| value_of(&Item::Table(table.clone()))).collect())
        }
    }
}

fn value_of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(bool) => Value::from(*bool.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(value_of_value).collect()),
        toml_edit::Value::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), value_of_value(value))).collect())
        }
    }
}

/// An entry as `[[hooks.Event]]`, its handlers as `[[hooks.Event.hooks]]`.
fn table(value: &Value) -> Table {
    let mut table = Table::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let item = match value {
            Value::Array(items) if items.iter().all(Value::is_object) => {
                Item::ArrayOfTables(items.iter().map(self::table).collect())
            }
            Value::Array(_)
            | Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => Item::Value(inline(value)),
        };
        table.insert(key, item);
    }
    table
}

/// A value on one line.
fn inline(value: &Value) -> toml_edit::Value {
    match value {
        // TOML has no null, and no entry holds one.
        Value::Null => toml_edit::Value::from(""),
        Value::Bool(bool) => toml_edit::Value::from(*bool),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| toml_edit::Value::from(number.as_f64().unwrap_or(0.0)), toml_edit::Value::from),
        Value::String(text) => toml_edit::Value::from(text.as_str()),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(inline).collect()),
        Value::Object(object) => {
            let mut table = InlineTable::new();
            for (key, value) in object {
                table.insert(key, inline(value));
            }
            toml_edit::Value::InlineTable(table)
        }
    }
}
