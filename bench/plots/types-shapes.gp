# Set before: data (a format of the panel's number), titles (of panels). Columns:
# place, label, us, floor, best peer, cuBLAS, letter of the peer.
load plots.'/common.gp'
set multiplot layout 2,3 title heading noenhanced margins 0.05,0.99,0.09,0.84 spacing 0.045,0.15
set ylabel 'time, us' offset 1.5
set xtics rotate by 45 right
set xrange [-0.6:*]
do for [panel=1:6] {
  file = sprintf(data, panel)
  set title part(titles, panel) noenhanced
  if (panel == 1) {
    set key at screen 0.5,0.905 center horizontal maxrows 1
  } else {
    unset key
  }
  set yrange [0:*]
  plot file using ($1-0.2):3:(0.38) with boxes lc rgb ours title 'Tilus in C', \
       file using ($1+0.2):5:(0.38) with boxes lc rgb peer title 'best peer', \
       file using ($1+0.2):5:7 with labels offset 0,0.5 font ',8' tc rgb '#555555' notitle, \
       file using ($1-0.4):4:(0.8):(0) with vectors nohead ls 9 title 'read floor (estimate)', \
       file using 1:6 with lines lc rgb library lw 2 dt 2 title 'cuBLAS f16', \
       file using 1:(NaN):xtic(2) notitle
}
unset multiplot
