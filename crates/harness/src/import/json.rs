//! JSON with comments, read with the place of every value.

use super::{ImportError, SourceFile};
use crate::jsonc::WITH_COMMENTS;
use jsonc_parser::ast::{Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, parse_to_ast};

/// A file that was read.
pub(super) struct Document<'f> {
    pub(super) file: &'f SourceFile,
    /// Where its lines start.
    starts: Vec<usize>,
}

impl<'f> Document<'f> {
    /// Reads a file whose outermost value is an object. Nesting is limited by the parser.
    pub(super) fn read(file: &'f SourceFile) -> Result<(Self, Object<'f>), ImportError> {
        let newlines = file.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let document = Self { file, starts: std::iter::once(0).chain(newlines).collect() };
        let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
        let parsed = parse_to_ast(&file.text, &collect, &WITH_COMMENTS)
            .map_err(|error| ImportError::new(file, error.line_display(), error.kind().to_string()))?;
        match parsed.value {
            Some(Value::Object(object)) => Ok((document, object)),
            Some(other) => Err(document.wrong(&other, "an object is expected here")),
            None => Err(ImportError::new(file, 1, "the file is empty")),
        }
    }

    /// The line of a value.
    pub(super) fn line(&self, of: &impl Ranged) -> usize {
        self.starts.partition_point(|start| *start <= of.range().start)
    }

    /// An error at a value.
    pub(super) fn wrong(&self, at: &impl Ranged, what: impl Into<String>) -> ImportError {
        ImportError::new(self.file, self.line(at), what)
    }

    /// The value of a key; a key that is given twice is an error, because agents differ in which one counts.
    pub(super) fn get<'o, 'a>(
        &self,
        object: &'o Object<'a>,
        key: &str,
    ) -> Result<Option<&'o Value<'a>>, ImportError> {
        let mut found = object.properties.iter().filter(|property| property.name.as_str() == key);
        let first = found.next();
        match found.next() {
            Some(second) => Err(self.wrong(second, format!("`{key}` is given twice; keep one of them"))),
            None => Ok(first.map(|property| &property.value)),
        }
    }

    /// The object of a key.
    pub(super) fn object<'o, 'a>(
        &self,
        object: &'o Object<'a>,
        key: &str,
    ) -> Result<Option<&'o Object<'a>>, ImportError> {
        match self.get(object, key)? {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(self.wrong(other, format!("`{key}` is not an object"))),
        }
    }

    /// The list of a key; empty when there is none.
    pub(super) fn list<'o, 'a>(
        &self,
        object: &'o Object<'a>,
        key: &str,
    ) -> Result<&'o [Value<'a>], ImportError> {
        match self.get(object, key)? {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(&list.elements),
            Some(other) => Err(self.wrong(other, format!("`{key}` is not a list"))),
        }
    }

    /// The text of a value.
    pub(super) fn text<'o, 'a>(&self, value: &'o Value<'a>) -> Result<&'o StringLit<'a>, ImportError> {
        value.as_string_lit().ok_or_else(|| self.wrong(value, "a text in quotes is expected here"))
    }

    /// Refuses a key that is none of these and sounds as if it forbade something: a newer release may heed it.
    pub(super) fn no_other_deny(&self, object: &Object<'_>, known: &[&str]) -> Result<(), ImportError> {
        let forbids = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["deny", "denied", "block", "forbid", "disallow"].iter().any(|word| name.contains(word))
        };
        match Self::others(object, known).find(|property| forbids(property.name.as_str())) {
            None => Ok(()),
            Some(property) => {
                let what =
                    format!("`{}` is not known here, and may forbid something", property.name.as_str());
                Err(self.wrong(property, what))
            }
        }
    }

    /// The keys of an object that are none of these.
    pub(super) fn others<'o, 'a>(
        object: &'o Object<'a>,
        known: &[&str],
    ) -> impl Iterator<Item = &'o ObjectProp<'a>> {
        object.properties.iter().filter(move |property| !known.contains(&property.name.as_str()))
    }
}
