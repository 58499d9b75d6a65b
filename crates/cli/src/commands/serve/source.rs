//! Whom a server follows: `--follow` and what belongs to it.

use std::path::PathBuf;

use clap::Args;
use forebay_server::{Source, SourceTls};

use super::password;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(next_help_heading = "Following another server")]
pub(super) struct SourceArgs {
    /// Follow the server of Forebay at this address: take in what it commits, answer who reads, and refuse writes, until
    /// REPLICAOF NO ONE. DB is new, or a checkpoint of that server, or has followed it before
    #[arg(long, value_name = "HOST:PORT")]
    follow: Option<String>,
    /// The user there, who has to be an administrator of all keys
    #[arg(long, value_name = "NAME", requires = "follow_password_file")]
    follow_user: Option<String>,
    /// The file whose first line is that user's password, or that of `default`
    #[arg(long, value_name = "FILE", requires = "follow")]
    follow_password_file: Option<PathBuf>,
    /// Follow by TLS: who vouches for that server, in PEM
    #[arg(long, value_name = "FILE", requires = "follow")]
    follow_tls_ca: Option<PathBuf>,
    /// The certificate that it is shown, in PEM
    #[arg(long, value_name = "FILE", requires = "follow_tls_ca", requires = "follow_tls_key")]
    follow_tls_cert: Option<PathBuf>,
    /// The private key of that
    #[arg(long, value_name = "FILE", requires = "follow_tls_cert")]
    follow_tls_key: Option<PathBuf>,
}

impl SourceArgs {
    /// Whom to follow, if anybody.
    pub(super) fn source(&self) -> Result<Option<Source>, Failure> {
        let Some(address) = &self.follow else { return Ok(None) };
        let wrong = || Failure::Usage(format!("--follow `{address}`: give HOST:PORT, such as 10.0.0.7:6379"));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_| wrong())?;
        if host.is_empty() {
            return Err(wrong());
        }
        let certificate = self.follow_tls_cert.clone().zip(self.follow_tls_key.clone());
        Ok(Some(Source {
            host: host.into(),
            port,
            user: self.follow_user.clone(),
            password: self.follow_password_file.as_ref().map(|path| password(path)).transpose()?,
            tls: self.follow_tls_ca.clone().map(|ca| SourceTls { ca, certificate }),
        }))
    }
}
