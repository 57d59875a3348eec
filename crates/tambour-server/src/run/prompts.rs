//! Loading of a folder with prompt templates (S-020).

use std::path::Path;

use tambour_prompt::template::TemplateFiles;

/// Reads the `.md` templates of a folder and its subfolders. A folder that does not exist has no templates.
///
/// # Errors
/// A file cannot be read, or two of them have the same id.
pub fn load_folder(root: &Path) -> Result<TemplateFiles, String> {
    let mut files = Vec::new();
    if root.is_dir() {
        read_folder(root, root, &mut files)?;
    }
    files.sort();
    TemplateFiles::new(files).map_err(|error| error.to_string())
}

/// Maximum number of components in the path of a template, from the root; deeper folders are not read.
const MAX_DEPTH: usize = 8;

/// Adds the templates of a folder below `root` to `files`: path from `root` with `/`, and text.
fn read_folder(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> Result<(), String> {
    let io_error = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    for entry in std::fs::read_dir(folder).map_err(|error| io_error(folder, &error))? {
        let path = entry.map_err(|error| io_error(folder, &error))?.path();
        let relative = path.strip_prefix(root).unwrap_or(&path);
        if path.is_dir() && relative.components().count() < MAX_DEPTH {
            read_folder(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).map_err(|error| io_error(&path, &error))?;
            let parts: Vec<_> =
                relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            files.push((parts.join("/"), text));
        }
    }
    Ok(())
}
