//! The one door of [`crate::Network::Domains`]: an HTTP proxy that judges host name and resolved address.
//!
//! The executor hands it a listening socket that was opened *inside* the command's own network namespace, so
//! no helper program and no unix socket is needed there:
//! `Proxy::new(rules).serve(std::net::TcpListener)`, `decisions() -> Vec<NetworkDecision>`.

use std::net::IpAddr;

/// Which hosts a command may reach. A deny beats an allow; what neither names is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainRules {
    /// Host names that may be reached: `example.com` exactly, `*.example.com` any name below it.
    pub allow: Vec<String>,
    /// Host names that may not, even when an allow covers them.
    pub deny: Vec<String>,
}

/// One connection that was asked for through the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkDecision {
    /// The host as the client named it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address it resolved to, when it got that far.
    pub address: Option<IpAddr>,
    /// Whether it was let through.
    pub allowed: bool,
    /// The rule that decided, or why none did.
    pub rule: String,
}
