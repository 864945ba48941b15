//! Private keys and certificates in files.
//!
//! Called by [`super::Identity`]. Invariant: a private key never lies in a file that others may read, and a file with
//! one is never seen half-written or written over.

use super::IdentityError;
use data_encoding::BASE64;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use zeroize::Zeroizing;

/// The PKCS#8 bytes of the private key in a PEM file that only its owner may read.
pub(super) fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |cause| IdentityError::Read { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(unreadable)?;
    check_private(path, &file.metadata().map_err(unreadable)?)?;
    let mut text = Zeroizing::new(Vec::new());
    file.read_to_end(&mut text).map_err(unreadable)?;
    let key = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| IdentityError::NoKey { path: path.to_owned() })?;
    Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec()))
}

/// Writes a private key into a new file, for its owner only. A file that is there already stays.
pub(super) fn create_key(path: &Path, pkcs8: &[u8]) -> Result<(), IdentityError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    create_private_folder(folder).map_err(|cause| IdentityError::Write { path: folder.to_owned(), cause })?;
    let text = Zeroizing::new(format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        Zeroizing::new(BASE64.encode(pkcs8)).as_str()
    ));
    // Written aside and then named, so that another that starts now reads all of it or makes its own.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|cause| IdentityError::Write { path: path.to_owned(), cause })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all());
    written.map_err(|cause| IdentityError::Write { path: path.to_owned(), cause })?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(IdentityError::Write { path: path.to_owned(), cause: error.error })
        }
        _ => Ok(()),
    }
}

/// The certificates of a PEM file, in its order.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = fs::read(path).map_err(|cause| IdentityError::Read { path: path.to_owned(), cause })?;
    CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| IdentityError::Certificates { path: path.to_owned(), cause: error.to_string() })
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), IdentityError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(IdentityError::Exposed { path: path.to_owned(), mode }) }
}

// Limit: elsewhere the folder's access rules decide, and are not looked at.
#[cfg(not(unix))]
fn check_private(_path: &Path, _metadata: &fs::Metadata) -> Result<(), IdentityError> {
    Ok(())
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
