//! jq filters: a closed list of functions that only compute, none of which sees the environment, loads a module, or
//! goes on for ever.
//!
//! The tokens are those of jq 1.6 (`src/lexer.l`); where 1.7 and later split a filter differently it is held back.

use crate::finding::Code;
use crate::spec::ScriptIssue;
use alloc::vec::Vec;

/// What was learned of an admitted filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    /// Whether it asks for further inputs itself.
    pub(crate) takes_inputs: bool,
}

/// Checks a filter.
pub(crate) fn check(filter: &str) -> Result<Filter, ScriptIssue> {
    let tokens = Scanner { text: filter, at: 0, tokens: Vec::new(), open: Vec::new() }.scan()?;
    let walk = Walk { tokens: &tokens };
    walk.names()?;
    walk.definitions()?;
    walk.ranges()?;
    let takes_inputs = tokens.iter().any(|token| matches!(token.text, "input" | "inputs"));
    Ok(Filter { takes_inputs })
}

/// Checks a filter that must be harmless to the Go program `yq` as well, whose language is another with the same looks.
pub(crate) fn check_common(filter: &str) -> Result<Filter, ScriptIssue> {
    const COMMON: &[&str] = &[
        "keys",
        "length",
        "select",
        "map",
        "has",
        "type",
        "to_entries",
        "from_entries",
        "with_entries",
        "sort",
        "sort_by",
        "unique",
        "unique_by",
        "group_by",
        "reverse",
        "flatten",
        "first",
        "min",
        "max",
        "any",
        "all",
        "add",
        "not",
        "and",
        "or",
        "true",
        "false",
        "null",
        "contains",
        "test",
        "join",
        "split",
        "del",
        "tostring",
    ];
    let without_comparisons = filter.replace("==", "  ").replace("!=", "  ");
    if let Some(at) = without_comparisons.find(['\\', '#', '$', '@', '=', '\'', '`', '&', '*']) {
        return Err(ScriptIssue::new(at, at + 1, "is not read alike by the programs that are called yq"));
    }
    if let Some(at) = filter.find("..") {
        return Err(ScriptIssue::new(at, at + 2, "is not read alike by the programs that are called yq"));
    }
    let tokens = Scanner { text: filter, at: 0, tokens: Vec::new(), open: Vec::new() }.scan()?;
    for token in &tokens {
        if matches!(token.kind, Kind::Name | Kind::Keyword) && !COMMON.contains(&token.text) {
            return token.issue("is not a function that is harmless to all programs that are called yq");
        }
    }
    check(filter)
}

/// Functions that compute from their input and arguments alone, and end.
const FUNCTIONS: &[&str] = &[
    "IN",
    "INDEX",
    "JOIN",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arrays",
    "ascii",
    "ascii_downcase",
    "ascii_upcase",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "booleans",
    "bsearch",
    "builtins",
    "capture",
    "cbrt",
    "ceil",
    "combinations",
    "contains",
    "copysign",
    "cos",
    "cosh",
    "date",
    "dateadd",
    "datesub",
    "debug",
    "del",
    "delpaths",
    "drem",
    "empty",
    "endswith",
    "erf",
    "erfc",
    "error",
    "exp",
    "exp10",
    "exp2",
    "explode",
    "expm1",
    "fabs",
    "false",
    "fdim",
    "finites",
    "first",
    "flatten",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "format",
    "frexp",
    "from_entries",
    "fromdate",
    "fromdateiso8601",
    "fromjson",
    "fromstream",
    "gamma",
    "getpath",
    "gmtime",
    "group_by",
    "gsub",
    "halt",
    "halt_error",
    "has",
    "have_decnum",
    "have_literal_numbers",
    "hypot",
    "implode",
    "in",
    "index",
    "indices",
    "infinite",
    "input",
    "input_filename",
    "input_line_number",
    "inputs",
    "inside",
    "isempty",
    "isfinite",
    "isinfinite",
    "isnan",
    "isnormal",
    "isvalid",
    "iterables",
    "j0",
    "j1",
    "jn",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "ldexp",
    "leaf_paths",
    "length",
    "lgamma",
    "lgamma_r",
    "limit",
    "localtime",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "ltrim",
    "ltrimstr",
    "map",
    "map_values",
    "match",
    "max",
    "max_by",
    "min",
    "min_by",
    "mktime",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "nexttoward",
    "normals",
    "not",
    "now",
    "nth",
    "null",
    "nulls",
    "numbers",
    "objects",
    "path",
    "paths",
    "pick",
    "pow",
    "pow10",
    "range",
    "recurse",
    "recurse_down",
    "remainder",
    "reverse",
    "rindex",
    "rint",
    "round",
    "rtrim",
    "rtrimstr",
    "scalars",
    "scalars_or_empty",
    "scalb",
    "scalbln",
    "scan",
    "select",
    "setpath",
    "significand",
    "sin",
    "sinh",
    "skip",
    "sort",
    "sort_by",
    "split",
    "splits",
    "sqrt",
    "startswith",
    "stderr",
    "strflocaltime",
    "strftime",
    "strings",
    "strptime",
    "sub",
    "tan",
    "tanh",
    "test",
    "tgamma",
    "to_entries",
    "toarray",
    "todate",
    "todateiso8601",
    "tojson",
    "tonumber",
    "tostream",
    "tostring",
    "transpose",
    "trim",
    "trimstr",
    "true",
    "trunc",
    "truncate_stream",
    "type",
    "unique",
    "unique_by",
    "utf8bytelength",
    "values",
    "walk",
    "with_entries",
    "y0",
    "y1",
    "yn",
];

const KEYWORDS: &[&str] = &[
    "as", "def", "if", "then", "else", "elif", "and", "or", "end", "reduce", "foreach", "try", "catch",
    "label", "break",
];

/// The largest number that may stand in the arguments of `range`, and in all of them multiplied.
const MOST_ROUNDS: u64 = 10_000_000;

fn special(name: &str) -> Option<&'static str> {
    Some(match name {
        "env" => "shows the environment",
        "import" | "include" | "module" | "modulemeta" => "reads a module from a file",
        "get_search_list" | "get_jq_origin" | "get_prog_origin" => "shows where jq and its modules lie",
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Keyword,
    /// `.name`
    Field,
    /// `$name`
    Variable,
    Number,
    /// A whole string without interpolation, or the pieces around one.
    Text,
    Operator,
}

#[derive(Debug, Clone, Copy)]
struct Token<'s> {
    kind: Kind,
    text: &'s str,
    start: usize,
    /// The innermost bracket that is open here; `"` for an interpolation, `i` for an `if`.
    within: u8,
}

impl Token<'_> {
    fn is(&self, text: &str) -> bool {
        self.kind == Kind::Operator && self.text == text
    }

    fn issue<T>(&self, why: &'static str) -> Result<T, ScriptIssue> {
        Err(ScriptIssue::new(self.start, self.start + self.text.len(), why))
    }

    fn endless<T>(&self, why: &'static str) -> Result<T, ScriptIssue> {
        Err(ScriptIssue {
            code: Code::Endless,
            ..ScriptIssue::new(self.start, self.start + self.text.len(), why)
        })
    }
}

struct Scanner<'s> {
    text: &'s str,
    at: usize,
    tokens: Vec<Token<'s>>,
    open: Vec<u8>,
}

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn issue<T>(&self, start: usize, why: &'static str) -> Result<T, ScriptIssue> {
        Err(ScriptIssue::new(start, self.text.len().min(self.at.max(start + 1)), why))
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let text = self.text.get(start..self.at).unwrap_or("");
        let within = self.open.last().copied().unwrap_or(0);
        self.tokens.push(Token { kind, text, start, within });
    }

    fn scan(mut self) -> Result<Vec<Token<'s>>, ScriptIssue> {
        while let Some(first) = self.rest().chars().next() {
            let start = self.at;
            let second = self.rest().chars().nth(1);
            let begins_name = |c: char| c.is_ascii_alphabetic() || c == '_';
            match first {
                ' ' | '\t' | '\n' => self.at += 1,
                '#' => {
                    let line = self.rest().split('\n').next().unwrap_or("");
                    if line.ends_with('\\') || line.contains('\r') {
                        return self.issue(start, "is a comment whose end depends on the version of jq");
                    }
                    self.at += line.len();
                }
                '"' => {
                    self.at += 1;
                    self.string(start)?;
                }
                '.' if second.is_some_and(begins_name) => {
                    self.at += 1;
                    self.word();
                    self.push(Kind::Field, start);
                }
                '0'..='9' | '.' => self.number(start),
                '$' => {
                    self.at += 1;
                    let rest = self.rest();
                    self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len();
                    let from = self.at;
                    self.word();
                    let name = self.text.get(from..self.at).unwrap_or("");
                    if name == "ENV" {
                        return self.issue(start, "shows the environment");
                    }
                    if name.is_empty() || name.starts_with("__") && name != "__loc__" {
                        return self.issue(start, "is not a variable that is known");
                    }
                    self.push(Kind::Variable, start);
                }
                '@' => {
                    self.at += 1;
                    self.word();
                    self.push(Kind::Text, start);
                }
                c if begins_name(c) => {
                    self.word();
                    let word = self.text.get(start..self.at).unwrap_or("");
                    if !KEYWORDS.contains(&word) {
                        self.push(Kind::Name, start);
                        continue;
                    }
                    // Between `if` and `end` a comma in an object does not begin a key: `{a: if . then 1, env end}`.
                    if word == "end" && self.open.pop() != Some(b'i') {
                        return self.issue(start, "ends an `if` that is not open");
                    }
                    self.push(Kind::Keyword, start);
                    if word == "if" {
                        self.open.push(b'i');
                    }
                }
                _ => self.operator(start)?,
            }
        }
        if self.open.is_empty() {
            Ok(self.tokens)
        } else {
            self.issue(self.text.len().saturating_sub(1), "has brackets or strings that are not closed")
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    }

    /// jq 1.6 takes any run of digits and dots for a number, `..` apart.
    fn number(&mut self, start: usize) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let digits = rest.starts_with(|c: char| c.is_ascii_digit())
            || rest.get(1..).is_some_and(|more| more.starts_with(|c: char| c.is_ascii_digit()));
        if digits && let Some(after) = self.rest().strip_prefix(['e', 'E']) {
            let sign = usize::from(after.starts_with(['+', '-']));
            let exponent = after.get(sign..).unwrap_or("");
            if exponent.starts_with(|c: char| c.is_ascii_digit()) {
                self.at += 1 + sign + exponent.find(|c: char| !c.is_ascii_digit()).unwrap_or(exponent.len());
            }
        }
        self.push(if digits { Kind::Number } else { Kind::Operator }, start);
    }

    /// A string from the current place to its end, or to the `\(` of an interpolation, whose `)` continues it.
    fn string(&mut self, start: usize) -> Result<(), ScriptIssue> {
        loop {
            let Some(c) = self.rest().chars().next() else {
                return self.issue(start, "is a string without its end");
            };
            self.at += c.len_utf8();
            match c {
                '"' => {
                    self.push(Kind::Text, start);
                    return Ok(());
                }
                '\\' => match self.rest().chars().next() {
                    Some('(') => {
                        self.push(Kind::Text, start);
                        self.at += 1;
                        self.open.push(b'"');
                        return Ok(());
                    }
                    Some(escaped) => self.at += escaped.len_utf8(),
                    None => return self.issue(start, "is a string without its end"),
                },
                _ => {}
            }
        }
    }

    fn operator(&mut self, start: usize) -> Result<(), ScriptIssue> {
        const OPERATORS: &[&str] = &[
            "?//", "//=", "!=", "==", "|=", "+=", "-=", "*=", "/=", "%=", "<=", ">=", "//", "?", "=", ";",
            ",", ":", "|", "+", "-", "*", "/", "%", "<", ">", "[", "]", "{", "}", "(", ")",
        ];
        let rest = self.rest();
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) else {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
            return self.issue(start, "is not part of the language that is admitted");
        };
        self.at += operator.len();
        match *operator {
            "(" | "[" | "{" => {
                self.push(Kind::Operator, start);
                self.open.extend(operator.bytes());
            }
            ")" | "]" | "}" => {
                let opened = self.open.pop();
                match (opened, *operator) {
                    (Some(b'"'), ")") => {
                        self.push(Kind::Operator, start);
                        let from = self.at;
                        return self.string(from);
                    }
                    (Some(b'('), ")") | (Some(b'['), "]") | (Some(b'{'), "}") => {
                        self.push(Kind::Operator, start);
                    }
                    _ => return self.issue(start, "closes a bracket that is not open"),
                }
            }
            _ => self.push(Kind::Operator, start),
        }
        Ok(())
    }
}

struct Walk<'t, 's> {
    tokens: &'t [Token<'s>],
}

impl<'s> Walk<'_, 's> {
    fn get(&self, at: usize) -> Option<&Token<'s>> {
        self.tokens.get(at)
    }

    fn before(&self, at: usize) -> Option<&Token<'s>> {
        self.get(at.checked_sub(1)?)
    }

    /// Whether the name at `at` is the key of an object: `{name: …}` or `{name}`.
    fn is_key(&self, at: usize) -> bool {
        self.get(at).is_some_and(|token| token.within == b'{')
            && self.before(at).is_some_and(|before| before.is("{") || before.is(",") && before.within == b'{')
    }

    /// The names that the filter defines itself, and those of their parameters.
    fn defined(&self, name: &str) -> bool {
        self.tokens.iter().enumerate().any(|(at, token)| {
            token.kind == Kind::Keyword
                && token.text == "def"
                && (self.get(at + 1).is_some_and(|defined| defined.text == name)
                    || self.parameters(at + 2).iter().any(|parameter| parameter.text == name))
        })
    }

    /// The tokens between the parentheses at `at`, if there are any.
    fn parameters(&self, at: usize) -> &[Token<'s>] {
        if !self.get(at).is_some_and(|token| token.is("(")) {
            return &[];
        }
        let mut depth = 0_usize;
        let closes = |token: &Token<'_>| {
            match token.text {
                "(" | "[" | "{" if token.kind == Kind::Operator => depth += 1,
                ")" | "]" | "}" if token.kind == Kind::Operator => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        };
        let end = self.tokens.iter().skip(at).position(closes).unwrap_or(0);
        self.tokens.get(at + 1..at + end).unwrap_or(&[])
    }

    fn names(&self) -> Result<(), ScriptIssue> {
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::Name || self.is_key(at) {
                continue;
            }
            if let Some(why) = special(token.text) {
                return token.issue(why);
            }
            let name = token.text;
            if matches!(name, "while" | "until" | "repeat") {
                return token.endless("may go on for ever");
            }
            if self.get(at + 1).is_some_and(|next| next.is(":"))
                && self.get(at + 2).is_some_and(|next| next.is(":"))
            {
                return token.issue("names another module");
            }
            if !FUNCTIONS.contains(&name) && !self.defined(name) {
                return token.issue("is not a function that is known only to compute");
            }
        }
        Ok(())
    }

    /// No definition may call itself. One can only call those before it, so that no two call each other.
    fn definitions(&self) -> Result<(), ScriptIssue> {
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::Keyword || token.text != "def" {
                continue;
            }
            let Some(name) = self.get(at + 1) else {
                return token.issue("defines nothing");
            };
            if FUNCTIONS.contains(&name.text) {
                return name.issue("is given another meaning");
            }
            // Everything that follows may belong to the body, up to the `;` that ends it: definitions inside have their
            // own.
            let mut inner = 0_usize;
            let mut brackets = 0_usize;
            let from = at
                + 2
                + if self.parameters(at + 2).is_empty() { 0 } else { self.parameters(at + 2).len() + 2 };
            for token in self.tokens.iter().skip(from) {
                if token.kind == Kind::Keyword && token.text == "def" {
                    inner += 1;
                }
                match token.text {
                    _ if token.kind == Kind::Name && token.text == name.text => {
                        return token.endless("calls itself, perhaps for ever");
                    }
                    "(" | "[" | "{" if token.kind == Kind::Operator => brackets += 1,
                    ")" | "]" | "}" if token.kind == Kind::Operator => brackets = brackets.saturating_sub(1),
                    ";" if token.kind == Kind::Operator && brackets == 0 => {
                        if inner == 0 {
                            break;
                        }
                        inner -= 1;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// `range` counts to small numbers or lengths only; `recurse(f)` only goes down.
    fn ranges(&self) -> Result<(), ScriptIssue> {
        let counts = self.tokens.iter().any(|token| token.kind == Kind::Name && token.text == "range");
        let large = |token: &&Token<'_>| match token.kind {
            Kind::Number => {
                let whole = token.text.split('.').next().unwrap_or("");
                token.text.contains(['e', 'E'])
                    || whole.len() > 12
                    || whole.parse::<u64>().is_ok_and(|number| number > MOST_ROUNDS)
            }
            Kind::Name => token.text == "infinite",
            Kind::Keyword | Kind::Field | Kind::Variable | Kind::Text | Kind::Operator => false,
        };
        if let Some(token) = self.tokens.iter().find(large).filter(|_| counts) {
            return token.endless("may be a number to count to");
        }
        let mut product = 1_u64;
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::Name || self.is_key(at) {
                continue;
            }
            match token.text {
                "combinations" => return token.endless("may stand for more combinations than ever end"),
                "gsub" | "sub" => {
                    let arguments = self.parameters(at + 1);
                    let mut parts = arguments.split(|token| token.is(";"));
                    let (regex, _, flags) = (parts.next(), parts.next(), parts.next());
                    let advances = matches!(regex, Some([regex]) if regex.kind == Kind::Text
                        && super::regex::always_consumes(regex.text));
                    let plain_flags = match flags {
                        None => true,
                        Some([flags]) => flags.kind == Kind::Text && !flags.text.contains('x'),
                        Some(_) => false,
                    };
                    if (token.text == "gsub" || flags.is_some()) && !(advances && plain_flags) {
                        return token.endless("goes on for ever in jq 1.6 where the pattern matches nothing");
                    }
                }
                "recurse" => {
                    let arguments = self.parameters(at + 1);
                    let called = self.get(at + 1).is_some_and(|next| next.is("("));
                    if called && !goes_down(arguments) {
                        return token.endless("may go on for ever with these arguments");
                    }
                }
                "range" => {
                    let arguments = self.parameters(at + 1);
                    let mut parts = arguments.split(|token| token.is(";"));
                    let step = parts.nth(2);
                    let counts = match step {
                        None => true,
                        Some([by]) => {
                            by.kind == Kind::Number && by.text.bytes().any(|b| matches!(b, b'1'..=b'9'))
                        }
                        Some([minus, by]) => {
                            minus.is("-") && by.kind == Kind::Number && !by.text.starts_with('0')
                        }
                        Some(_) => false,
                    };
                    let mut most = 1;
                    for token in arguments {
                        let plain = match token.kind {
                            Kind::Number => match token.text.parse::<u64>() {
                                Ok(number) => {
                                    most = number.max(most);
                                    true
                                }
                                Err(_) => false,
                            },
                            Kind::Name => token.text == "length",
                            Kind::Field | Kind::Variable => true,
                            Kind::Operator => matches!(
                                token.text,
                                ";" | "," | "+" | "-" | "." | "|" | "[" | "]" | "(" | ")"
                            ),
                            Kind::Keyword | Kind::Text => false,
                        };
                        if !plain {
                            return token.endless("is not a small number to count to");
                        }
                    }
                    product = product.saturating_mul(most);
                    if !counts || product > MOST_ROUNDS {
                        return token.endless("counts further than is admitted");
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// `.[]?`, `.children[]`: paths that end in all elements of a value, so that each step goes deeper into a finite value.
fn goes_down(arguments: &[Token<'_>]) -> bool {
    let path = |token: &Token<'_>| match token.kind {
        Kind::Field => true,
        Kind::Operator => matches!(token.text, "." | "[" | "]" | "?"),
        Kind::Name | Kind::Keyword | Kind::Variable | Kind::Number | Kind::Text => false,
    };
    let last = |back: usize| arguments.len().checked_sub(back).and_then(|at| arguments.get(at));
    let back = if last(1).is_some_and(|token| token.is("?")) { 2 } else { 1 };
    arguments.iter().all(path)
        && last(back).is_some_and(|token| token.is("]"))
        && last(back + 1).is_some_and(|token| token.is("["))
}
