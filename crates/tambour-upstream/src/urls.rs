//! Masking of secrets in URLs, and recognition of local hosts.

/// Masks the user name, password and query of a URL, for logs and answers. A text without `://` stays as it
/// is.
pub fn mask_url(url: &str) -> String {
    let Some((scheme, after_scheme)) = url.split_once("://") else { return url.to_owned() };
    let address_len = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    let (address, path) = after_scheme.split_at(address_len);
    let address =
        address.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("***@{host}"));
    let path = path.split_once('?').map_or_else(|| path.to_owned(), |(path, _)| format!("{path}?***"));
    format!("{scheme}://{address}{path}")
}

/// Returns `true` if a host name or address refers to this machine.
pub fn is_local_host(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
