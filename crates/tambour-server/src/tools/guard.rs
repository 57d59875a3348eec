//! Access rule for webhooks: hosts that the configuration lists, at public addresses unless private ones are
//! allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::ToolLimits;

/// Access rule for webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    private: bool,
}

/// Reason why a webhook may not be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Barred {
    /// The URL is unusable.
    #[error(
        "`{0}` is no URL of a webhook: it begins with http:// or https://, names a host, and holds no password"
    )]
    Url(String),
    /// The configuration does not list the host.
    #[error("the host `{0}` is not in `tools.allowed_hosts` of the server's configuration")]
    Host(String),
    /// The address is private.
    #[error(
        "the address {0} is of this machine or of a private network; `tools.allow_private` of the server's configuration permits those"
    )]
    Private(IpAddr),
    /// The address is never called.
    #[error("the address {0} is never called: it is link-local, multicast, reserved or unspecified")]
    Never(IpAddr),
}

impl Barred {
    /// Returns the reason in Chinese.
    pub(crate) fn zh(&self) -> String {
        match self {
            Barred::Url(url) => {
                format!(
                    "`{url}` 不是可用的 webhook 地址：应以 http:// 或 https:// 开头，包含主机名，且不含密码"
                )
            }
            Barred::Host(host) => format!("主机 `{host}` 不在服务器配置的 `tools.allowed_hosts` 中"),
            Barred::Private(address) => format!(
                "地址 {address} 属于本机或内部网络；只有服务器配置了 `tools.allow_private` 才允许调用"
            ),
            Barred::Never(address) => {
                format!("地址 {address} 一律不能调用：它是链路本地、组播、保留或未指定的地址")
            }
        }
    }
}

impl Guard {
    pub(crate) fn new(limits: &ToolLimits) -> Guard {
        let hosts = limits.allowed_hosts.iter().map(|host| plain(host)).collect();
        Guard { hosts, private: limits.allow_private }
    }

    /// Checks a URL without resolving its host name. The URL parser normalizes all spellings of addresses
    /// (decimal, octal, hexadecimal, short).
    pub(crate) fn url(&self, text: &str) -> Result<Url, Barred> {
        let wrong = || Barred::Url(text.chars().take(200).collect());
        let url = Url::parse(text).map_err(|_| wrong())?;
        let secrets = !url.username().is_empty() || url.password().is_some();
        let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https") && !secrets)
        else {
            return Err(wrong());
        };
        let host = plain(host);
        let port = url.port_or_known_default().unwrap_or_default();
        if !self.hosts.iter().any(|known| names(known, &host, port)) {
            return Err(Barred::Host(host));
        }
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            self.address(address)?;
        }
        Ok(url)
    }

    /// Checks an address.
    pub(crate) fn address(&self, address: IpAddr) -> Result<(), Barred> {
        match kind(address) {
            Kind::Public => Ok(()),
            Kind::Private if self.private => Ok(()),
            Kind::Private => Err(Barred::Private(address)),
            Kind::Never => Err(Barred::Never(address)),
        }
    }
}

/// Normalizes a host for comparison: lower case, without a final dot.
fn plain(host: &str) -> String {
    host.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Returns `true` if an entry of the list matches this host and port.
fn names(entry: &str, host: &str, port: u16) -> bool {
    let (name, of_port) = match entry.rsplit_once(':') {
        // The last colon of an IPv6 address separates no port.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, Some(digits)),
        _ => (entry, None),
    };
    // An invalid port must match no port instead of every one.
    if of_port.is_some_and(|digits| digits.parse::<u16>() != Ok(port)) {
        return false;
    }
    match name.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|before| before.ends_with('.')),
        None => name.trim_matches(['[', ']']) == host.trim_matches(['[', ']']),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Private,
    Never,
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(v4) => kind_v4(v4),
        IpAddr::V6(v6) => kind_v6(v6),
    }
}

fn kind_v4(v4: Ipv4Addr) -> Kind {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        // "This network", link-local (cloud metadata services), multicast and reserved.
        (0 | 224.., ..) | (169, 254, _) => Kind::Never,
        // Protocol assignments, documentation, benchmarks, and the old 6to4 relay.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) | (198, 18 | 19, _) => Kind::Never,
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Kind::Private,
        _ => Kind::Public,
    }
}

fn kind_v6(v6: Ipv6Addr) -> Kind {
    if let Some(v4) = v6.to_ipv4_mapped() {
        return kind_v4(v4);
    }
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let last = || Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match (a, b) {
        // NAT64 leads to the embedded IPv4 address.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => kind_v4(last()),
        _ if v6 == Ipv6Addr::LOCALHOST => Kind::Private,
        (0xfc00..=0xfdff, _) => Kind::Private,
        // Public is only global unicast, without Teredo, 6to4, ORCHID and documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, _) => Kind::Never,
        (0x2000..=0x3fff, _) => Kind::Public,
        _ => Kind::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::{Barred, Guard, Kind, ToolLimits, kind};

    fn guard(hosts: &[&str], private: bool) -> Guard {
        let allowed_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Guard::new(&ToolLimits { allowed_hosts, allow_private: private, ..ToolLimits::default() })
    }

    #[test]
    fn kinds_of_addresses() {
        for (address, wanted) in [
            ("93.184.216.34", Kind::Public),
            ("2606:4700::1111", Kind::Public),
            ("64:ff9b::8.8.8.8", Kind::Public),
            ("127.0.0.1", Kind::Private),
            ("127.255.255.255", Kind::Private),
            ("10.1.2.3", Kind::Private),
            ("172.31.0.1", Kind::Private),
            ("192.168.1.1", Kind::Private),
            // Shared addresses of carrier-grade NAT are 100.64.0.0/10.
            ("100.63.255.255", Kind::Public),
            ("100.64.0.0", Kind::Private),
            ("100.127.255.255", Kind::Private),
            ("100.128.0.0", Kind::Public),
            ("::ffff:100.64.0.1", Kind::Private),
            ("64:ff9b::100.100.100.200", Kind::Private),
            ("::1", Kind::Private),
            ("fd00:ec2::254", Kind::Private),
            ("::ffff:127.0.0.1", Kind::Private),
            ("64:ff9b::10.0.0.1", Kind::Private),
            ("169.254.169.254", Kind::Never),
            ("::ffff:169.254.169.254", Kind::Never),
            ("64:ff9b::169.254.169.254", Kind::Never),
            ("0.0.0.0", Kind::Never),
            ("::", Kind::Never),
            ("::127.0.0.1", Kind::Never),
            ("224.0.0.1", Kind::Never),
            ("255.255.255.255", Kind::Never),
            ("fe80::1", Kind::Never),
            ("ff02::1", Kind::Never),
            ("2002:7f00:1::", Kind::Never),
            ("2001::1", Kind::Never),
            ("2001:db8::1", Kind::Never),
        ] {
            assert_eq!(kind(address.parse().unwrap()), wanted, "{address}");
        }
    }

    #[test]
    fn hosts_are_those_of_the_list() {
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
        for fine in [
            "https://tools.example/x",
            "http://TOOLS.example:81",
            "https://a.hooks.example/",
            "https://a.b.hooks.example/",
            "https://ported.example:8443/",
        ] {
            assert!(guard.url(fine).is_ok(), "{fine}");
        }
        for barred in [
            "https://hooks.example/",
            "https://xhooks.example/",
            "https://tools.example.evil.example/",
            "https://ported.example/",
            "https://wrong.example/",
            "https://no.example/",
            "http://127.0.0.1/",
        ] {
            assert!(matches!(guard.url(barred), Err(Barred::Host(_))), "{barred}");
        }
        for wrong in ["ftp://tools.example", "tools.example", "https://a:b@tools.example/", "file:///etc", ""]
        {
            assert!(matches!(guard.url(wrong), Err(Barred::Url(_))), "{wrong}");
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
            assert!(matches!(guard(&hosts, false).url(spelling), Err(Barred::Private(_))), "{spelling}");
            assert!(guard(&hosts, true).url(spelling).is_ok(), "{spelling}");
            assert!(matches!(guard(&[], true).url(spelling), Err(Barred::Host(_))), "{spelling}");
        }
        let metadata = guard(&["169.254.169.254"], true);
        assert!(matches!(metadata.url("http://2852039166/"), Err(Barred::Never(_))));
    }
}
