//! Access rule for webhooks: hosts that the configuration lists, at public addresses unless private ones are
//! allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::ToolLimits;

/// Access rule for webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebhookGuard {
    /// Entries of allowed hosts: `host`, `host:port` or `*.domain`, normalized.
    hosts: Vec<String>,
    /// True if private addresses may be called.
    allow_private: bool,
}

/// Reason why a webhook may not be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebhookRefusal {
    /// The URL is invalid, is not `http` or `https`, or has a user name or password.
    #[error(
        "`{0}` is not a valid webhook URL: it must begin with http:// or https://, name a host, and contain no password"
    )]
    Url(String),
    /// The configuration does not list the host.
    #[error("the host `{0}` is not in `tools.allowed_hosts` of the server's configuration")]
    Host(String),
    /// The address is private, and private addresses are not allowed.
    #[error(
        "the address {0} belongs to this machine or a private network; `tools.allow_private` of the server's configuration permits those"
    )]
    Private(IpAddr),
    /// The address is of a kind that is never called.
    #[error("the address {0} is never called: it is link-local, multicast, reserved or unspecified")]
    Forbidden(IpAddr),
}

impl WebhookRefusal {
    /// Returns the reason in Chinese.
    pub(crate) fn chinese(&self) -> String {
        match self {
            WebhookRefusal::Url(url) => {
                format!(
                    "`{url}` 不是可用的 webhook 地址：应以 http:// 或 https:// 开头，包含主机名，且不含密码"
                )
            }
            WebhookRefusal::Host(host) => format!("主机 `{host}` 不在服务器配置的 `tools.allowed_hosts` 中"),
            WebhookRefusal::Private(address) => format!(
                "地址 {address} 属于本机或内部网络；只有服务器配置了 `tools.allow_private` 才允许调用"
            ),
            WebhookRefusal::Forbidden(address) => {
                format!("地址 {address} 一律不能调用：它是链路本地、组播、保留或未指定的地址")
            }
        }
    }
}

impl WebhookGuard {
    pub(crate) fn new(limits: &ToolLimits) -> WebhookGuard {
        let hosts = limits.allowed_hosts.iter().map(|host| normalize_host(host)).collect();
        WebhookGuard { hosts, allow_private: limits.allow_private }
    }

    /// Parses a URL and checks it, without resolving its host name. The URL parser normalizes all spellings
    /// of addresses (decimal, octal, hexadecimal, short).
    pub(crate) fn check_url(&self, text: &str) -> Result<Url, WebhookRefusal> {
        let url_refusal = || WebhookRefusal::Url(text.chars().take(200).collect());
        let url = Url::parse(text).map_err(|_| url_refusal())?;
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        let is_http = matches!(url.scheme(), "http" | "https");
        let Some(host) = url.host_str().filter(|_| is_http && !has_credentials) else {
            return Err(url_refusal());
        };
        let host = normalize_host(host);
        let port = url.port_or_known_default().unwrap_or_default();
        if !self.hosts.iter().any(|entry| entry_matches(entry, &host, port)) {
            return Err(WebhookRefusal::Host(host));
        }
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            self.check_address(address)?;
        }
        Ok(url)
    }

    /// Checks the address of a host, given in its URL or found by resolving its name.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), WebhookRefusal> {
        match address_kind(address) {
            AddressKind::Public => Ok(()),
            AddressKind::Private if self.allow_private => Ok(()),
            AddressKind::Private => Err(WebhookRefusal::Private(address)),
            AddressKind::Forbidden => Err(WebhookRefusal::Forbidden(address)),
        }
    }
}

/// Normalizes a host for comparison: lower case, without a final dot.
fn normalize_host(host: &str) -> String {
    host.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Returns `true` if an entry of the allowed hosts matches this host and port.
fn entry_matches(entry: &str, host: &str, port: u16) -> bool {
    let (name, port_text) = match entry.rsplit_once(':') {
        // The last colon of an IPv6 address without brackets separates no port.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, Some(digits)),
        _ => (entry, None),
    };
    // An invalid port must match no port instead of every one.
    if port_text.is_some_and(|digits| digits.parse::<u16>() != Ok(port)) {
        return false;
    }
    match name.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|subdomain| subdomain.ends_with('.')),
        None => name.trim_matches(['[', ']']) == host.trim_matches(['[', ']']),
    }
}

/// Kind of an address, for the access rule.
#[derive(Debug, PartialEq, Eq)]
enum AddressKind {
    /// Always allowed.
    Public,
    /// Of this machine or a private network: allowed by the configuration only.
    Private,
    /// Never allowed.
    Forbidden,
}

fn address_kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(v4) => address_kind_v4(v4),
        IpAddr::V6(v6) => address_kind_v6(v6),
    }
}

fn address_kind_v4(v4: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        // Addresses of "this network", multicast and reserved ones, and link-local ones, which include the
        // metadata services of clouds.
        (0 | 224.., ..) | (169, 254, _) => AddressKind::Forbidden,
        // Protocol assignments, documentation, benchmarks, and the old 6to4 relay.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) | (198, 18 | 19, _) => {
            AddressKind::Forbidden
        }
        // Private networks, loopback, and shared addresses of carrier-grade NAT.
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => AddressKind::Private,
        _ => AddressKind::Public,
    }
}

fn address_kind_v6(v6: Ipv6Addr) -> AddressKind {
    if let Some(v4) = v6.to_ipv4_mapped() {
        return address_kind_v4(v4);
    }
    let [a, b, c, d, e, f, g, h] = v6.segments();
    // The last 32 bits.
    let embedded_v4 = || Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match (a, b) {
        // NAT64 leads to the embedded IPv4 address.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => address_kind_v4(embedded_v4()),
        _ if v6 == Ipv6Addr::LOCALHOST => AddressKind::Private,
        (0xfc00..=0xfdff, _) => AddressKind::Private,
        // Of global unicast, everything is public except Teredo, ORCHID, documentation and 6to4.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, _) => AddressKind::Forbidden,
        (0x2000..=0x3fff, _) => AddressKind::Public,
        _ => AddressKind::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressKind, ToolLimits, WebhookGuard, WebhookRefusal, address_kind};

    fn guard(hosts: &[&str], private: bool) -> WebhookGuard {
        let allowed_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        WebhookGuard::new(&ToolLimits { allowed_hosts, allow_private: private, ..ToolLimits::default() })
    }

    #[test]
    fn addresses_are_public_private_or_never_called() {
        for (address, expected) in [
            ("93.184.216.34", AddressKind::Public),
            ("2606:4700::1111", AddressKind::Public),
            ("64:ff9b::8.8.8.8", AddressKind::Public),
            ("127.0.0.1", AddressKind::Private),
            ("127.255.255.255", AddressKind::Private),
            ("10.1.2.3", AddressKind::Private),
            ("172.31.0.1", AddressKind::Private),
            ("192.168.1.1", AddressKind::Private),
            // Shared addresses of carrier-grade NAT are 100.64.0.0/10.
            ("100.63.255.255", AddressKind::Public),
            ("100.64.0.0", AddressKind::Private),
            ("100.127.255.255", AddressKind::Private),
            ("100.128.0.0", AddressKind::Public),
            ("::ffff:100.64.0.1", AddressKind::Private),
            ("64:ff9b::100.100.100.200", AddressKind::Private),
            ("::1", AddressKind::Private),
            ("fd00:ec2::254", AddressKind::Private),
            ("::ffff:127.0.0.1", AddressKind::Private),
            ("64:ff9b::10.0.0.1", AddressKind::Private),
            ("169.254.169.254", AddressKind::Forbidden),
            ("::ffff:169.254.169.254", AddressKind::Forbidden),
            ("64:ff9b::169.254.169.254", AddressKind::Forbidden),
            ("0.0.0.0", AddressKind::Forbidden),
            ("::", AddressKind::Forbidden),
            ("::127.0.0.1", AddressKind::Forbidden),
            ("224.0.0.1", AddressKind::Forbidden),
            ("255.255.255.255", AddressKind::Forbidden),
            ("fe80::1", AddressKind::Forbidden),
            ("ff02::1", AddressKind::Forbidden),
            ("2002:7f00:1::", AddressKind::Forbidden),
            ("2001::1", AddressKind::Forbidden),
            ("2001:db8::1", AddressKind::Forbidden),
        ] {
            assert_eq!(address_kind(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn only_listed_hosts_may_be_called() {
        let guard = guard(
            &[
                "Tools.example.",
                "*.hooks.example",
                "ported.example:8443",
                "wrong.example:84430",
                "no.example:",
            ],
            false,
        );
        for allowed_url in [
            "https://tools.example/x",
            "http://TOOLS.example:81",
            "https://a.hooks.example/",
            "https://a.b.hooks.example/",
            "https://ported.example:8443/",
        ] {
            assert!(guard.check_url(allowed_url).is_ok(), "{allowed_url}");
        }
        for refused_url in [
            "https://hooks.example/",
            "https://xhooks.example/",
            "https://tools.example.evil.example/",
            "https://ported.example/",
            "https://wrong.example/",
            "https://no.example/",
            "http://127.0.0.1/",
        ] {
            assert!(matches!(guard.check_url(refused_url), Err(WebhookRefusal::Host(_))), "{refused_url}");
        }
        for bad_url in
            ["ftp://tools.example", "tools.example", "https://a:b@tools.example/", "file:///etc", ""]
        {
            assert!(matches!(guard.check_url(bad_url), Err(WebhookRefusal::Url(_))), "{bad_url}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        let spellings = [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
        ];
        let hosts = ["127.0.0.1", "[::1]", "::ffff:7f00:1"];
        for spelling in spellings {
            assert!(
                matches!(guard(&hosts, false).check_url(spelling), Err(WebhookRefusal::Private(_))),
                "{spelling}"
            );
            assert!(guard(&hosts, true).check_url(spelling).is_ok(), "{spelling}");
            assert!(
                matches!(guard(&[], true).check_url(spelling), Err(WebhookRefusal::Host(_))),
                "{spelling}"
            );
        }
        let metadata = guard(&["169.254.169.254"], true);
        assert!(matches!(metadata.check_url("http://2852039166/"), Err(WebhookRefusal::Forbidden(_))));
    }
}
