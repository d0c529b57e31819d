# A panel for each m, of `titles`. Columns: number, model, milliseconds of cuBLAS, then milliseconds and
# floor of each series; `names` of the series.
load plots.'/common.gp'
set multiplot layout 2,3 title heading noenhanced margins 0.055,0.99,0.06,0.9 spacing 0.055,0.1
set ylabel 'products of a step, ms'
set yrange [0:*]
set xrange [-0.6:2.6]
colours = ours.' '.second.' '.third.' '.fourth.' '.fifth
do for [panel=1:5] {
  file = sprintf(data, panel)
  set title part(titles, panel)
  if (panel == 1) {
    set key at screen 0.86,0.3 center vertical maxrows 7
  } else {
    unset key
  }
  plot file using ($1-0.35):3:(0.13) with boxes lc rgb library title 'cuBLAS f16', \
       for [i=0:4] file using ($1+0.14*(i-1.5)):(column(4+2*i)):(0.13) with boxes \
           lc rgb word(colours, i+1) title part(names, i+1), \
       for [i=0:4] file using ($1+0.14*(i-1.5)-0.065):(column(5+2*i)):(0.13):(0) \
           with vectors nohead ls 9 title (i == 0 ? 'read floor (estimate)' : ''), \
       file using 1:(NaN):xtic(2) notitle
}
unset multiplot
