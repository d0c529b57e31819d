-- Starts tilus-lsp, in Neovim 0.8 or later; Vim does not read this file. Its options are vim.g.tilus_lsp:
--   vim.g.tilus_lsp = { target = "sm_90a", defines = { BM = 64 }, importPaths = { "/path/to/library" } }
vim.bo.commentstring = "// %s"
if vim.fn.executable("tilus-lsp") == 0 then
  return
end
local marker = vim.fs.find(".git", { upward = true, path = vim.fs.dirname(vim.api.nvim_buf_get_name(0)) })[1]
vim.lsp.start({
  name = "tilus-lsp",
  cmd = { "tilus-lsp" },
  root_dir = marker and vim.fs.dirname(marker),
  init_options = vim.g.tilus_lsp or vim.empty_dict(),
})
