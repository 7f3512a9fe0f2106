//! Random command lines: mostly well-formed, with a taste for what shells get wrong, and broken here and there.

/// A small generator of random numbers (SplitMix64); the same seed gives the same strings everywhere.
pub(crate) struct Random {
    state: u64,
    /// Whether the text is for the inside of a `$( )`.
    substituting: bool,
}

const SOUP: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    "\\\n",
    "{",
    "}",
    "(",
    ")",
    ";",
    "&",
    "|",
    "<",
    ">",
    "$",
    "`",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    " ",
    "\t",
    "if ",
    "then ",
    "else ",
    "elif ",
    "fi",
    "do ",
    "done",
    "case ",
    "esac",
    " in ",
    "for x in ",
    "while ",
    "until ",
    "time ",
    "time -p ",
    "[[ ",
    " ]]",
    "((",
    "))",
    "<<E\n",
    "\nE\n",
    "<<-'E'\n",
    "2>&1",
    ">/dev/null",
    "&>/dev/null",
    "2>",
    ">&2",
    "<<<",
    "=",
    "+=",
    "x=",
    ",",
    "..",
    "\u{a0}",
    "\u{3000}",
    "$'",
    "$'\\x41'",
    "\\t",
    "$x",
    "${x}",
    "\"$x\"",
    "$(",
    "$((",
    "&&",
    "||",
    ";;",
    "|&",
    "w0 ",
    "f0 ",
    "r0 ",
    "a",
    "b",
    "1",
    "0",
    "-",
    ":",
    "/",
    "é",
    "{a,b}",
    "{1..3}",
    "${",
    "# c\n",
    "#c",
    "a[1]=",
    "b[",
    "^",
    "%",
    "@",
    "+",
    ".",
    "function ",
    "coproc ",
    "select ",
    "\\{",
    "\\,",
    "'{'",
    "! ",
    "< /dev/null",
    "`w0`",
    "$(w0 a)",
    "}",
    "{ ",
    "; }",
    "'\n'",
    "\"\n\"",
    "\"\\\n\"",
    "~/",
    "=~",
    "$\"",
    "$[",
    "<(",
    ">(",
    "{fd}>",
    "2<",
    "&2",
    "-p ",
    "\\'",
    "\\\"",
    "\"'\"",
    "'\"'",
    "$#",
    "$?",
    "E",
    "\\\\",
];

impl Random {
    /// A generator that starts at `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, substituting: false }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }

    /// A command line.
    pub(crate) fn command_line(&mut self) -> String {
        let mut text = match self.below(12) {
            0 => self.soup(),
            1 => format!("w0 {}", self.soup()),
            _ => self.list(3),
        };
        if self.one_in(3) {
            for _ in 0..=self.below(3) {
                self.damage(&mut text);
            }
        }
        text
    }

    fn soup(&mut self) -> String {
        (0..=self.below(10)).map(|_| self.pick(SOUP)).collect()
    }

    /// Inserts, removes or doubles something somewhere.
    fn damage(&mut self, text: &mut String) {
        let mut chars: Vec<char> = text.chars().collect();
        let at = self.below(chars.len() + 1);
        if self.one_in(3) && at < chars.len() {
            let end = (at + 1 + self.below(3)).min(chars.len());
            chars.drain(at..end);
        } else {
            let piece = self.pick(SOUP);
            chars.splice(at..at, piece.chars());
        }
        *text = chars.into_iter().collect();
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = String::new();
        let count = 1 + self.below(3);
        for index in 0..count {
            let (line, bodies) = self.pipeline(depth);
            text.push_str(&line);
            if bodies.is_empty() {
                let last = index + 1 == count;
                let joints: &[&str] = if last {
                    &["", "", "", ";", "\n", " # end", " ;"]
                } else {
                    &[
                        "; ",
                        "\n",
                        " && ",
                        " || ",
                        " ;\n",
                        " # x \\\n",
                        " &&\n",
                        "||",
                        "&&",
                        ";",
                        " && \\\n ",
                        "\n\n",
                        " |\n",
                    ]
                };
                text.push_str(self.pick(joints));
            } else {
                text.push('\n');
                text.push_str(&bodies);
            }
        }
        text
    }

    /// A list on one line, for inside.
    fn inner(&mut self, depth: usize) -> String {
        self.inner_list(depth, true)
    }

    /// The inside of a `$( )`, where a here-document may only be the last thing and `time` has no place.
    fn substituted(&mut self, depth: usize) -> String {
        let outside = std::mem::replace(&mut self.substituting, true);
        let mut text = self.inner_list(depth, false);
        self.substituting = outside;
        if self.one_in(6) {
            match self.below(5) {
                0 => text.clear(),
                1 => text.push_str(" | "),
                2 => text.push_str(" && "),
                _ => text.push_str("; "),
            }
            let mut bodies = String::new();
            text.push_str("r0");
            self.here_document(&mut text, &mut bodies);
            text.push('\n');
            text.push_str(&bodies);
        }
        text
    }

    fn inner_list(&mut self, depth: usize, documents: bool) -> String {
        let mut text = String::new();
        for index in 0..=self.below(2) {
            if index > 0 {
                text.push_str(self.pick(&["; ", " && ", " || "]));
            }
            let (line, bodies) = self.pipeline(depth);
            text.push_str(&line);
            if !bodies.is_empty() {
                if !documents {
                    text.truncate(text.len() - line.len());
                    text.push_str("w0");
                    continue;
                }
                text.push('\n');
                text.push_str(&bodies);
                text.push_str("w1");
            }
        }
        text
    }

    /// A pipeline, and the bodies of the here-documents that it starts.
    fn pipeline(&mut self, depth: usize) -> (String, String) {
        let mut text = String::new();
        let mut bodies = String::new();
        if self.one_in(8) && (!self.substituting || self.one_in(20)) {
            text.push_str(self.pick(&["! ", "time ", "time -p ", "! time ", "time ! "]));
        }
        for index in 0..[1, 1, 1, 2, 3][self.below(5)] {
            if index > 0 {
                text.push_str(self.pick(&[" | ", "|", " |& ", "| ", " | \\\n"]));
            }
            if index > 0 && self.one_in(20) {
                text.push_str("time ");
            }
            if depth > 0 && self.one_in(6) {
                let compound = self.compound(depth - 1);
                text.push_str(&compound);
                if self.one_in(4) {
                    text.push_str(self.pick(&[" >/dev/null", " 2>&1", "</dev/null", " &>/dev/null"]));
                }
            } else {
                self.simple(depth, &mut text, &mut bodies);
            }
        }
        (text, bodies)
    }

    fn compound(&mut self, depth: usize) -> String {
        let first = self.inner(depth);
        let second = self.inner(depth);
        let end = self.pick(&["; ", "\n", " ;\n", "\n\n", " # c\n", ";"]);
        match self.below(14) {
            0 => format!("( {first} )"),
            1 => format!("({first})"),
            2 => format!("(\n{first}{end})"),
            3 => format!("{{ {first}; }}"),
            4 => format!("{{\n{first}{end}}}"),
            5 => format!("if {first}{end}then {second}{end}fi"),
            6 => {
                let third = self.inner(depth);
                format!("if {first}\nthen {second}\nelse {third}{end}fi")
            }
            7 => {
                let third = self.inner(0);
                let fourth = self.inner(0);
                format!("if {first}{end}then {second}{end}elif {third}{end}then\n{fourth}{end}fi")
            }
            8 => {
                let name = self.pick(&["x", "y"]);
                let words = format!("{} {}", self.word(0), self.word(0));
                format!("for {name} in {words}{end}do {second}{end}done")
            }
            9 => {
                let name = self.pick(&["x", "y"]);
                format!("for {name} in {}\ndo\n{first}\ndone", self.word(0))
            }
            10 => {
                let (keyword, negation) = [("until", ""), ("while", "! ")][self.below(2)];
                format!("{keyword} {negation}{first}{end}do {second}{end}done")
            }
            11 => {
                let patterns = [self.pattern(), self.pattern(), self.pattern()];
                let [one, two, three] = patterns;
                let word = self.word(0);
                let open = self.pick(&["", "", "("]);
                format!("case {word} in {open}{one}) {first};; {two}|{three}) {second}{end}esac")
            }
            12 => {
                let word = self.word(0);
                format!(
                    "case {word} in\n{})\n{first}\n;;\n{} ) ;;\n*) {second} ;; esac",
                    self.pattern(),
                    self.pattern()
                )
            }
            _ => self.test(),
        }
    }

    fn pattern(&mut self) -> String {
        if self.one_in(2) {
            self.pick(&["*", "a*", "b", "a", "'a'", "\"$x\"", "p*q"]).into()
        } else {
            self.word(0)
        }
    }

    fn test(&mut self) -> String {
        let left = self.word(0);
        let right = self.word(0);
        let more = self.word(0);
        match self.below(9) {
            0 => format!("[[ {left} ]]"),
            1 => format!("[[ ! {left} ]]"),
            2 => format!("[[ -n {left} ]]"),
            3 => format!("[[ {left} {} {right} ]]", self.pick(&["&&", "||"])),
            5 => format!(
                "[[ {left} =~ {} ]]",
                self.pick(&["a", "ab", "b$", "^a", "$x", "\"a\"", "[ab]", "a+"])
            ),
            6 => format!(
                "[[ {} {} {} ]]",
                self.below(12),
                self.pick(&["-eq", "-lt", "-ge", "<"]),
                self.below(12)
            ),
            4 => format!("[[ -z {left} && {right} == {more} ]]"),
            _ => format!("[[ {left} {} {} ]]", self.pick(&["==", "!=", "="]), self.pattern()),
        }
    }

    fn simple(&mut self, depth: usize, text: &mut String, bodies: &mut String) {
        while self.one_in(10) {
            text.push_str(self.pick(&["x=", "y=", "z=", "x+="]));
            if !self.one_in(4) {
                let word = self.word(depth);
                text.push_str(&word);
            }
            text.push(' ');
        }
        let name = match self.below(16) {
            0 => self.word(depth),
            1..3 => "f0".into(),
            3..5 => "r0".into(),
            5 => "w1".into(),
            6 => "w\\0".into(),
            7 => "'w0'".into(),
            _ => "w0".into(),
        };
        text.push_str(&name);
        for _ in 0..self.below(4) {
            text.push_str(self.pick(&[" ", " ", " ", "\t", "  ", " \\\n", "\\\n "]));
            let word = self.word(depth);
            text.push_str(&word);
        }
        if self.one_in(5) {
            text.push_str(self.pick(&[
                " 2>/dev/null",
                " >/dev/null",
                ">/dev/null",
                " 2>&1",
                " >&2",
                " &>/dev/null",
                " 2>&1 a",
                "&>/dev/null",
                "2>&1",
                "0</dev/null",
                " >|/dev/null",
                " 1>>/dev/null b",
                " &>>/dev/null",
                " >& /dev/null",
                " 2>& 1",
            ]));
        }
        if name == "r0" {
            if self.one_in(2) {
                text.push_str(self.pick(&[" <<< ", " <<<"]));
                let word = self.word(depth);
                text.push_str(&word);
            } else {
                self.here_document(text, bodies);
            }
        }
    }

    fn here_document(&mut self, text: &mut String, bodies: &mut String) {
        let tabs = self.one_in(3);
        let name = self.pick(&["E", "EOF", "E-1", "x"]);
        let (delimiter, quoted) = match self.below(5) {
            0 => (format!("'{name}'"), true),
            1 => (format!("\"{name}\""), true),
            2 => (format!("\\{name}"), true),
            3 if self.one_in(3) => (format!("{}\"{}\"''", &name[..1], &name[1..]), true),
            _ => (name.to_string(), false),
        };
        text.push_str(if tabs { " <<-" } else { " <<" });
        text.push_str(self.pick(&["", " "]));
        text.push_str(&delimiter);
        for _ in 0..self.below(4) {
            if tabs && self.one_in(2) {
                bodies.push_str(self.pick(&["\t", "\t\t", "\t "]));
            }
            for _ in 0..self.below(4) {
                let piece = match self.below(6) {
                    0 if !quoted => {
                        self.pick(&["$x", "${y}", "$(w1 b)", "`w0`", "\\$x", "\\`", "\\\\", "$((12))"]).into()
                    }
                    1 => self.pick(SOUP).replace('\n', ""),
                    _ => self
                        .pick(&["a", " ", "\"", "'", "\\", "#", "E", "$", "*", "~", "{a,b}", "\\\"", "\\a"])
                        .to_string(),
                };
                bodies.push_str(&piece);
            }
            bodies.push('\n');
        }
        if tabs {
            bodies.push_str(self.pick(&["", "\t"]));
        }
        bodies.push_str(name);
        bodies.push('\n');
    }

    fn word(&mut self, depth: usize) -> String {
        // Braces beside expansions are refused, and a word of both kinds says little, so most words are of one.
        let braces = self.one_in(6);
        let length = self.below(4);
        let mut word = String::new();
        for _ in 0..=length {
            let piece = if braces && self.one_in(2) { self.braces(2) } else { self.piece(depth) };
            if braces && piece.contains(['$', '`']) && !self.one_in(20) {
                continue;
            }
            word.push_str(&piece);
        }
        if word.is_empty() { "a".into() } else { word }
    }

    fn piece(&mut self, depth: usize) -> String {
        match self.below(24) {
            0 => format!("'{}'", self.pick(&["", "a b", "\\", "\"", "$x", "\n", "{a,b}", "*", "~", "#"])),
            1 => format!(
                "\"{}\"",
                self.pick(&[
                    "", "a b", "\\\"", "'", "\\$x", "\\a", "\\\\", "\n", "\\\n", "{a,b}", "*", "$", "$x",
                    "a${y}b", "`w0`"
                ])
            ),
            2 => format!(
                "\\{}",
                self.pick(&[
                    "a", " ", "$", "\"", "'", "{", "}", ",", "*", "~", "#", "\\", ";", "&", "|", "é", "\n"
                ])
            ),
            3 => self.pick(&["{a", "a}", "{a}", "{}", "a,b}", "{,", "b"]).into(),
            5 => self.pick(&["~", "~/", "~a", "a=~", "a=b:~", ":~", "=~", "x=~/a", "a~"]).into(),
            6 => self
                .pick(&["*", "?", "[ab]", "[!a]", "[", "]", "[]", "[a", "a*b", "[]a]", "[[:alpha:]]"])
                .into(),
            7 => self.pick(&["$x", "$y", "${x}", "$x$x", "$1", "$#", "$", "$.", "$=", "$%"]).into(),
            8 => self.pick(&["\"$x\"", "\"${y}\"", "\"a $x b\"", "\"$x$y\"", "\"$\""]).into(),
            9 if depth > 0 => format!("$({})", self.substituted(depth - 1)),
            10 if depth > 0 => format!("\"$({})\"", self.substituted(depth - 1)),
            11 if depth > 0 => format!("`{}`", self.inner(0).replace(['`', '\\'], "")),
            12 => self
                .pick(&[
                    "#", "a#", "!", "a!", "=", "a=", "a=1", "+=", ",", "..", "%", "@", "^", "-", "--", "-a",
                    "}", "{", "{}",
                ])
                .into(),
            13 => self.pick(&["\u{a0}", "\u{3000}", "é", "\u{2028}", "\u{feff}", "日本"]).into(),
            14 if self.one_in(2) => {
                let mut text = String::from("$'");
                for _ in 0..=self.below(4) {
                    text.push_str(self.pick(&[
                        "\\x4",
                        "\\x41",
                        "\\x041",
                        "\\101",
                        "\\1011",
                        "\\60",
                        "\\0601",
                        "\\u43",
                        "\\u0043a",
                        "\\U00000044",
                        "\\a",
                        "\\e",
                        "\\E",
                        "\\?",
                        "\\\"",
                        "\\'",
                        "\\\\",
                        "\\v",
                        "\\n",
                        "\\t",
                        "\\r",
                        "\\f",
                        "\\b",
                        "a",
                        "z",
                        "9",
                        "$x",
                        "`",
                        "\"",
                        "{a,b}",
                        "\n",
                        "é",
                        "\\x7f",
                    ]));
                }
                text + "'"
            }
            14 => self
                .pick(&["$'a'", "$'\\n'", "$'\\''", "$'\\x41\\102\\u43'", "$'\"'", "$'\\t b'", "$'{a,b}'"])
                .into(),
            15 => self
                .pick(&[
                    "if", "then", "fi", "do", "done", "in", "esac", "time", "[[", "]]", "!", "{", "}",
                    "function",
                ])
                .into(),
            16 => self.pick(&["\\\n", "1", "2", "12", "0"]).into(),
            _ => self
                .pick(&["a", "b", "ab", "a.b", "a/b", "-n", "--a=b", "a:b", "1", "x", "A_1", "a,b", "a+b"])
                .into(),
        }
    }

    fn braces(&mut self, depth: usize) -> String {
        if self.one_in(4) {
            return self
                .pick(&[
                    "{1..3}",
                    "{a..c}",
                    "{3..1}",
                    "{01..3}",
                    "{1..9..3}",
                    "{-1..1}",
                    "{c..a..2}",
                    "{2..1}",
                    "{a..C}",
                ])
                .into();
        }
        let mut text = String::from("{");
        for index in 0..=self.below(3) {
            if index > 0 {
                text.push(',');
            }
            for _ in 0..self.below(3) {
                let piece = match self.below(9) {
                    0 if depth > 0 => self.braces(depth - 1),
                    1 => self.pick(&["'a'", "\"b c\"", "''", "\\,", "\\}", "\\{", "'{'", "\",\""]).into(),
                    2 => self.pick(&["{", "}", "{}", "..", "{a}", "a{", "}b", "~", "*", "[", "]"]).into(),
                    _ => self.pick(&["a", "b", "1", "x", "-", "=", "/"]).into(),
                };
                text.push_str(&piece);
            }
        }
        if !self.one_in(12) {
            text.push('}');
        }
        text
    }
}
