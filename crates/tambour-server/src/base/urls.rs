//! URLs: shown without secrets, and those of this machine.

/// Masks password and query of a URL.
pub(crate) fn mask_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (address, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let address =
        address.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("***@{host}"));
    let path = path.split_once('?').map_or_else(|| path.to_owned(), |(path, _)| format!("{path}?***"));
    format!("{scheme}://{address}{path}")
}

/// Returns `true` if a host is this machine.
pub(crate) fn is_local_host(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
