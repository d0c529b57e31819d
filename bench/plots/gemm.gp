# Panels: at rest above, under load below; f16, bf16 and f8e4m3. Columns: number, shape, TFLOP/s of
# cuBLAS, then of the kernels: those of `names`, or `eight` alone. A line at 0, for panels without rows.
load plots.'/common.gp'
set multiplot layout 2,3 title heading noenhanced margins 0.05,0.99,0.1,0.81 spacing 0.04,0.14
colours = ours.' '.second.' '.peer
set yrange [0:*]
do for [place=0:1] {
  do for [panel=0:2] {
    file = sprintf(data, place, panel)
    set title part(titles, panel+1).(place == 0 ? ', at rest' : ', under load') noenhanced
    if (panel == 0) { set ylabel 'TFLOP/s' } else { unset ylabel }
    if (place == 0 && panel == 0) { set key at screen 0.5,0.885 center horizontal maxrows 1 } else { unset key }
    if (panel < 2) {
      set xrange [-0.6:8.6]
      plot 0 with lines lc rgb '#444444' notitle, \
           file using ($1-0.3):3:(0.2) with boxes lc rgb library title 'cuBLAS', \
           for [i=1:3] file using ($1-0.3+0.2*i):(column(3+i)):(0.2) with boxes lc rgb word(colours, i) \
               title part(names, i), \
           file using 1:(NaN):xtic(2) notitle, \
           keyentry with boxes lc rgb third title eight
    } else {
      set xrange [-0.6:8.6]
      set xtics rotate by 30 right
      plot 0 with lines lc rgb '#444444' notitle, \
           file using ($1-0.2):3:(0.4) with boxes lc rgb library notitle, \
           file using ($1+0.2):4:(0.4) with boxes lc rgb third notitle, \
           file using 1:(NaN):xtic(2) notitle
      set xtics norotate center
    }
  }
}
unset multiplot
