//! Which hosts and addresses a command may reach. Pure: no name is resolved here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which hosts a command may reach. A deny beats an allow; what neither names is refused.
///
/// An entry is one of
///
/// - `example.com`: exactly this name;
/// - `*.example.com`: every name below it, but not itself;
/// - `*`: every name, and every public address given as a number;
/// - `192.0.2.7`, `10.0.0.0/8`, `fd00::/8`: addresses.
///
/// An address in `deny` also refuses names that resolve to it. An address that is not public (loopback, private,
/// link-local with the cloud metadata service, multicast, IPv4 inside IPv6, …) is reached only when `allow` holds it
/// as an address, and when a name led to it, that name too.
///
/// ```
/// use cmdgate_executor::DomainRules;
///
/// let rules = DomainRules::allowing(["crates.io", "*.crates.io"]).denying(["old.crates.io"]);
/// assert!(rules.check().is_ok());
/// assert!(DomainRules::allowing(["https://crates.io/"]).check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRules {
    /// What may be reached.
    pub allow: Vec<String>,
    /// What may not, even when an allow covers it.
    pub deny: Vec<String>,
    /// The ports that may be reached. Default: 80 and 443.
    pub ports: Vec<u16>,
}

impl Default for DomainRules {
    fn default() -> Self {
        Self { allow: Vec::new(), deny: Vec::new(), ports: vec![80, 443] }
    }
}

impl DomainRules {
    /// Allows these entries on ports 80 and 443.
    pub fn allowing<S: Into<String>>(entries: impl IntoIterator<Item = S>) -> Self {
        Self { allow: entries.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds entries that are refused.
    #[must_use]
    pub fn denying<S: Into<String>>(mut self, entries: impl IntoIterator<Item = S>) -> Self {
        self.deny.extend(entries.into_iter().map(Into::into));
        self
    }

    /// Are all entries well formed?
    ///
    /// # Errors
    /// The first one that is not, and why.
    pub fn check(&self) -> Result<(), RuleError> {
        Compiled::new(self).map(drop)
    }
}

/// An entry of [`DomainRules`] that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the network rule {entry:?}: {reason}")]
#[non_exhaustive]
pub struct RuleError {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A host as a request names it, in one normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// Lower case, without a final dot.
    Name(String),
    /// A number.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as it stands in a URL: a name, an IPv4 address, or an IPv6 address in brackets.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or("the bracket around the address is not closed")?;
            let address = Ipv6Addr::from_str(inner).map_err(|_| "this is no IPv6 address")?;
            return Ok(Self::Address(address.into()));
        }
        if let Ok(address) = Ipv4Addr::from_str(text) {
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return Err("a host name has 1 to 253 characters");
        }
        let well_formed = name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
        if !well_formed {
            return Err(
                "a host name consists of letters, digits, '-' and '_' between dots (international names in their xn-- form)",
            );
        }
        // The C library and URL parsers read `127.1`, `0x7f.1` and `2130706433` as addresses; no real top-level
        // domain looks like that (RFC 3696 section 2).
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal =
            last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("this is neither a name nor an address in its usual form");
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(out),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

/// A block of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    first: IpAddr,
    prefix: u8,
}

impl AddressRange {
    const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), prefix }
    }

    const fn v6(first: [u16; 3], prefix: u8) -> Self {
        let [a, b, c] = first;
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    /// IPv4 and IPv6 never contain one another, not even mapped.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same_prefix(first.to_bits().into(), address.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                same_prefix(first.to_bits(), address.to_bits(), 128, self.prefix)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    fn parse(text: &str) -> Option<Result<Self, &'static str>> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first = IpAddr::from_str(address).ok()?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) => match digits.parse::<u8>() {
                Ok(prefix) if prefix <= width && digits.len() <= 3 && !digits.starts_with('+') => prefix,
                Ok(_) | Err(_) => return Some(Err("the part after '/' is no prefix length")),
            },
        };
        Some(Ok(Self { first, prefix }))
    }
}

fn same_prefix(left: u128, right: u128, width: u32, prefix: u8) -> bool {
    // Shifting by the whole width is what `checked_shr` refuses: then every address is in the block.
    let shift = width.saturating_sub(prefix.into());
    (left ^ right).checked_shr(shift).unwrap_or(0) == 0
}

/// Address blocks that are no part of the public internet, from the IANA special-purpose registries
/// (RFC 6890 and its updates) with multicast (RFC 5771). For IPv6 see also [`address_class`].
const SPECIAL: &[(AddressRange, &str)] = &[
    (AddressRange::v4(0, 0, 0, 8), "this network"),
    (AddressRange::v4(10, 0, 0, 8), "private"),
    (AddressRange::v4(100, 64, 0, 10), "shared with the carrier"),
    (AddressRange::v4(127, 0, 0, 8), "loopback"),
    (AddressRange::v4(169, 254, 0, 16), "link-local"),
    (AddressRange::v4(172, 16, 0, 12), "private"),
    (AddressRange::v4(192, 0, 0, 24), "protocol assignments"),
    (AddressRange::v4(192, 0, 2, 24), "documentation"),
    (AddressRange::v4(192, 88, 99, 24), "6to4 relay"),
    (AddressRange::v4(192, 168, 0, 16), "private"),
    (AddressRange::v4(198, 18, 0, 15), "benchmarking"),
    (AddressRange::v4(198, 51, 100, 24), "documentation"),
    (AddressRange::v4(203, 0, 113, 24), "documentation"),
    (AddressRange::v4(224, 0, 0, 4), "multicast"),
    (AddressRange::v4(240, 0, 0, 4), "reserved"),
    (AddressRange::v6([0x2001, 0, 0], 23), "protocol assignments"),
    (AddressRange::v6([0x2001, 0xdb8, 0], 32), "documentation"),
    (AddressRange::v6([0x2002, 0, 0], 16), "6to4"),
    (AddressRange::v6([0x3fff, 0, 0], 20), "documentation"),
    (AddressRange::v6([0xfc00, 0, 0], 7), "unique local"),
    (AddressRange::v6([0xfe80, 0, 0], 10), "link-local"),
    (AddressRange::v6([0xff00, 0, 0], 8), "multicast"),
];

/// The only IPv6 block that is handed out for public use (RFC 4291); everything else is refused, so that `::1`,
/// `::ffff:127.0.0.1`, `64:ff9b::` and whatever is defined next need no row of their own.
const PUBLIC_V6: AddressRange = AddressRange::v6([0x2000, 0, 0], 3);

/// What kind of special address this is; `None` for a public one.
pub(super) fn address_class(address: IpAddr) -> Option<&'static str> {
    if let Some((_, class)) = SPECIAL.iter().find(|(range, _)| range.contains(address)) {
        return Some(class);
    }
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(_) if PUBLIC_V6.contains(address) => None,
        IpAddr::V6(v6) if v6.is_loopback() => Some("loopback"),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("IPv4 inside IPv6"),
        IpAddr::V6(_) => Some("not public"),
    }
}

#[derive(Debug, Clone)]
enum Pattern {
    Any,
    Exactly(String),
    Below(String),
    Range(AddressRange),
}

impl Pattern {
    fn parse(entry: &str) -> Result<Self, &'static str> {
        if entry == "*" {
            return Ok(Self::Any);
        }
        if let Some(range) = AddressRange::parse(entry) {
            return range.map(Self::Range);
        }
        let (name, below) = match entry.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (entry, false),
        };
        match Host::parse(name)? {
            Host::Name(name) if below => Ok(Self::Below(format!(".{name}"))),
            Host::Name(name) => Ok(Self::Exactly(name)),
            Host::Address(_) => Err("write an address without brackets and stars"),
        }
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, Host::Name(_) | Host::Address(_)) => true,
            (Self::Exactly(name), Host::Name(host)) => name == host,
            // The pattern begins with the dot, so something must stand before it.
            (Self::Below(suffix), Host::Name(host)) => host.len() > suffix.len() && host.ends_with(suffix),
            (Self::Range(range), Host::Address(address)) => range.contains(*address),
            (Self::Exactly(_) | Self::Below(_), Host::Address(_)) | (Self::Range(_), Host::Name(_)) => false,
        }
    }

    fn covers_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(address))
    }
}

/// A refusal: a stable name for the rule, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) rule: String,
    pub(super) reason: String,
}

/// [`DomainRules`] that were read and found well formed.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    allow: Vec<(String, Pattern)>,
    deny: Vec<(String, Pattern)>,
    ports: Vec<u16>,
}

impl Compiled {
    pub(super) fn new(rules: &DomainRules) -> Result<Self, RuleError> {
        let read = |entries: &[String]| {
            entries
                .iter()
                .map(|entry| {
                    Pattern::parse(entry)
                        .map(|pattern| (entry.clone(), pattern))
                        .map_err(|reason| RuleError { entry: entry.clone(), reason })
                })
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { allow: read(&rules.allow)?, deny: read(&rules.deny)?, ports: rules.ports.clone() })
    }

    /// Judges what the request says, before any name is resolved: resolving already tells the name server.
    ///
    /// Gives the name of the rule that allows.
    pub(super) fn judge_host(&self, host: &Host, port: u16) -> Result<String, Refusal> {
        if let Some((entry, _)) = self.deny.iter().find(|(_, pattern)| pattern.covers(host)) {
            return Err(Refusal {
                rule: format!("deny:{entry}"),
                reason: format!("the network rules deny {entry}"),
            });
        }
        if !self.ports.contains(&port) {
            return Err(Refusal {
                rule: "port".to_owned(),
                reason: format!("port {port} is not among the allowed ports {:?}", self.ports),
            });
        }
        match self.allow.iter().find(|(_, pattern)| pattern.covers(host)) {
            Some((entry, _)) => Ok(format!("allow:{entry}")),
            None => {
                Err(Refusal { rule: "default".to_owned(), reason: format!("no network rule allows {host}") })
            }
        }
    }

    /// Judges an address that is about to be connected to.
    pub(super) fn judge_address(&self, address: IpAddr) -> Result<(), Refusal> {
        if let Some((entry, _)) = self.deny.iter().find(|(_, pattern)| pattern.covers_address(address)) {
            return Err(Refusal {
                rule: format!("deny:{entry}"),
                reason: format!("the network rules deny {address}"),
            });
        }
        match address_class(address) {
            Some(class) if !self.names_address(address) => Err(Refusal {
                rule: "address".to_owned(),
                reason: format!(
                    "{address} is not a public address ({class}); allow it by number to reach it"
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Does the allow list hold this very address, as a number?
    pub(super) fn names_address(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|(_, pattern)| pattern.covers_address(address))
    }
}
