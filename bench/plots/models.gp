# A panel for each m, of `titles`: two side by side, or up to six in two rows. Columns: number, model, milliseconds of
# cuBLAS, then milliseconds and floor of each series; `names` of the series.
load plots.'/common.gp'
if (panels <= 2) {
  set multiplot layout 1,2 title heading noenhanced margins 0.07,0.99,0.1,0.79 spacing 0.07,0.1
} else {
  set multiplot layout 2,3 title heading noenhanced margins 0.055,0.99,0.06,0.88 spacing 0.055,0.12
}
set ylabel 'products of a step, ms'
set yrange [0:*]
set xrange [-0.6:2.6]
colours = ours.' '.second.' '.third.' '.fourth.' '.fifth
do for [panel=1:panels] {
  file = sprintf(data, panel)
  set title part(titles, panel)
  if (panel > 1) {
    unset key
  } else {
    if (panels <= 2) {
      set key at screen 0.5,0.885 center horizontal maxrows 1
    } else {
      set key at screen 0.86,0.3 center vertical maxrows 7
    }
  }
  plot file using ($1-0.35):3:(0.13) with boxes lc rgb library title 'cuBLAS f16', \
       for [i=0:series-1] file using ($1+0.14*(i-1.5)):(column(4+2*i)):(0.13) with boxes \
           lc rgb word(colours, i+1) title part(names, i+1), \
       for [i=0:series-1] file using ($1+0.14*(i-1.5)-0.065):(column(5+2*i)):(0.13):(0) \
           with vectors nohead ls 9 title (i == 0 ? 'read floor (estimate)' : ''), \
       file using 1:(NaN):xtic(2) notitle
}
unset multiplot
