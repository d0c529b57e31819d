autocmd BufRead,BufNewFile *.tilus setfiletype tilus
