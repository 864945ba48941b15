//! Private keys and certificates in files.
//!
//! Called by [`super::Identity`]. Invariant: a private key is never in a file that other users may read or own, but for the system's
//! administrator, who reads everything; such a file is never visible
//! half-written, and is never overwritten.

use super::IdentityError;
use data_encoding::BASE64;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use zeroize::Zeroizing;

/// Reads the PKCS#8 bytes of the private key in a PEM file that only its owner may read.
pub(super) fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |cause| IdentityError::Read { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(unreadable)?;
    check_private(path, &file.metadata().map_err(unreadable)?)?;
    let mut text = Zeroizing::new(Vec::new());
    file.read_to_end(&mut text).map_err(unreadable)?;
    let key = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| IdentityError::NoKey { path: path.to_owned() })?;
    Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec()))
}

/// Writes a private key into a new file, for its owner only. An existing file is not changed.
pub(super) fn create_key(path: &Path, pkcs8: &[u8]) -> Result<(), IdentityError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    create_private_folder(folder).map_err(|cause| IdentityError::Write { path: folder.to_owned(), cause })?;
    let text = Zeroizing::new(format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        Zeroizing::new(BASE64.encode(pkcs8)).as_str()
    ));
    // Written to a temporary file and then linked, so that another process sees the complete file or none.
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
    use std::os::unix::fs::MetadataExt as _;
    check_owner_and_mode(path, metadata.uid(), rustix::process::geteuid().as_raw(), metadata.mode() & 0o7777)
}

#[cfg(unix)]
fn check_owner_and_mode(path: &Path, owner: u32, ours: u32, mode: u32) -> Result<(), IdentityError> {
    if owner != ours && owner != 0 {
        return Err(IdentityError::Foreign { path: path.to_owned(), owner });
    }
    if mode & 0o077 == 0 { Ok(()) } else { Err(IdentityError::Exposed { path: path.to_owned(), mode }) }
}

// Limit: on other systems the access rules of the folder apply, and are not checked.
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_file_of_our_own_or_of_the_administrator_and_of_nobody_else() {
        let check = |owner, ours, mode| check_owner_and_mode(Path::new("key.pem"), owner, ours, mode);
        assert!(check(1000, 1000, 0o600).is_ok() && check(0, 1000, 0o400).is_ok() && check(0, 0, 0o600).is_ok());
        for (owner, ours) in [(1001, 1000), (1000, 0)] {
            let error = check(owner, ours, 0o600).unwrap_err();
            assert!(matches!(error, IdentityError::Foreign { owner: told, .. } if told == owner), "{error}");
            assert!(error.to_string().contains("belongs to another user"), "{error}");
        }
        assert!(matches!(check(1000, 1000, 0o640), Err(IdentityError::Exposed { mode: 0o640, .. })));
    }
}
